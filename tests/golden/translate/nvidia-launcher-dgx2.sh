# NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/scripts/run_pretraining.sh: a DGX-2 by position
export BERT_PREP_WORKING_DIR=data
bash scripts/run_pretraining.sh 4096 6e-3 fp16 16 0.2843 7038 200 false true true 64 42 bert_lamb_pretraining true true false 2048 4e-3 0.128 1563 256 data/128 data/512 /workspace/bert None
