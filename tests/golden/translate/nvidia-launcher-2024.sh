# NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/scripts/run_pretraining.sh (2024): what $(source scripts/configs/pretrain_config.sh && dgxa100-80g_8gpu_fp16) stands for, begun
export BERT_PREP_WORKING_DIR=data
bash scripts/run_pretraining.sh 8192 6e-3 fp16 8 0.2843 7038 200 false true true 32 42 bert_lamb_pretraining true true 4096 4e-3 0.128 1563 128
