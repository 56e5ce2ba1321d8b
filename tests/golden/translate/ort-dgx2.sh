# the ONNX Runtime example on a DGX-2: the script's parameters as its document edits them, and its start
seed=${12:-42}
num_gpus=${4:-4}
gpu_memory_limit_gb=${26:-"32"}
accumulate_gradients=${10:-"true"}
partition_optimizer=${27:-"false"}
train_batch_size=${1:-8192}
learning_rate=${2:-"6e-3"}
warmup_proportion=${5:-"0.2843"}
train_steps=${6:-7038}
accumulate_gradients=${10:-"true"}
gradient_accumulation_steps=${11:-128}
train_batch_size_phase2=${17:-4096}
learning_rate_phase2=${18:-"4e-3"}
warmup_proportion_phase2=${19:-"0.128"}
train_steps_phase2=${20:-1563}
gradient_accumulation_steps_phase2=${11:-256}
bash scripts/run_pretraining_ort.sh
