# NVIDIA DeepLearningExamples, PyTorch/LanguageModeling/BERT/README.md (2020): both phases, with the defaults of the script
export BERT_PREP_WORKING_DIR=data
bash scripts/run_pretraining.sh
