# transformers, examples/pytorch/language-modeling/README.md, with a BERT in place of its RoBERTa
python run_mlm.py \
    --model_name_or_path google-bert/bert-base-uncased \
    --train_file path_to_train_file.txt \
    --validation_file path_to_validation_file.txt \
    --per_device_train_batch_size 8 \
    --per_device_eval_batch_size 8 \
    --do_train \
    --do_eval \
    --output_dir /tmp/test-mlm
