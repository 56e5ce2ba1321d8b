# Intel's PyTorch BERT-large training in a container: phase 2
export PRECISION=avx-fp32
export DATASET_DIR=dataset
export CONFIG_FILE=bert_config.json
export OUTPUT_DIR=out1
export CHECKPOINT_DIR=${OUTPUT_DIR}/model_save
export OUTPUT_DIR=out2
SCRIPT=run_bert_pretrain_phase2.sh ./run.sh
