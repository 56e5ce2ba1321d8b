# Intel's PyTorch BERT-large training in a container: phase 1
export PRECISION=bf16
export OUTPUT_DIR=out1
export DATASET_DIR=dataset
export CONFIG_FILE=bert_config.json
./run.sh
