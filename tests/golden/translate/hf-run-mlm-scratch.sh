# From random weights, on four GPUs, with the options that people add
torchrun --nproc_per_node 4 run_mlm.py \
    --model-type bert \
    --tokenizer_name bert-base-cased \
    --dataset_name wikitext --dataset_config_name wikitext-103-raw-v1 \
    --line_by_line \
    --max_seq_length 128 \
    --mlm_probability 0.3 \
    --do_train --do_eval \
    --per_device_train_batch_size 64 --gradient_accumulation_steps 4 \
    --learning_rate 1e-4 --weight_decay 0.01 --adam_beta2 0.98 --adam_epsilon 1e-6 --max_grad_norm 0.5 \
    --lr_scheduler_type polynomial --warmup_ratio 0.06 --max_steps 100000 \
    --bf16 --gradient_checkpointing --torch_compile \
    --logging_steps 100 --eval_strategy steps --eval_steps 0.05 --save_steps 5000 --save_total_limit 2 \
    --report_to tensorboard wandb --run_name first --logging_dir logs \
    --load_best_model_at_end --no_remove_unused_columns --dataloader_num_workers 8 \
    --preprocessing_num_workers 16 --overwrite_cache --seed 1 --ddp_timeout 7200 \
    --output_dir out
