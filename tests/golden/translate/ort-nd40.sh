# the ONNX Runtime example and the Hungarian guide on ND40rs_v2: the script as their documents edit it, and its start
num_gpus=${4:-8}
gpu_memory_limit_gb=${26:-"32"}
seed=${12:-42}
accumulate_gradients=${10:-"true"}
deepspeed_zero_stage=${27:-"false"}
train_batch_size=${1:-16320}
learning_rate=${2:-"6e-3"}
warmup_proportion=${5:-"0.2843"}
train_steps=${6:-7038}
accumulate_gradients=${10:-"true"}
gradient_accumulation_steps=${11:-340}
train_batch_size_phase2=${17:-8160}
learning_rate_phase2=${18:-"4e-3"}
warmup_proportion_phase2=${19:-"0.128"}
train_steps_phase2=${20:-1563}
gradient_accumulation_steps_phase2=${11:-1020}
bash /workspace/bert/scripts/run_pretraining_ort.sh
