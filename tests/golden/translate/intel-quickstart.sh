# Intel's quick-start scripts on bare metal: both phases
export OUTPUT_DIR=out
export DATASET_DIR=dataset
export PRECISION=fp32
export BERT_MODEL_CONFIG=bert_config.json
export PRETRAINED_MODEL=checkpoint_phase1_dir
bash run_bert_pretrain_phase1.sh fp32
bash run_bert_pretrain_phase2.sh fp32
