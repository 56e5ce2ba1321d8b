"""Every parameter of the original programs is told of: the lists below are those of their command lines and scripts."""

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.cli import main
from bertwright.cli.explain_argument import explain_argument
from bertwright.core.errors import RecipeError
from bertwright.explain import explain, originals

PARAMETERS = {
    "NVIDIA and ONNX Runtime run_pretraining": """
        input_dir config_file output_dir bert_model init_checkpoint max_seq_length max_predictions_per_seq
        train_batch_size learning_rate num_train_epochs max_steps warmup_proportion local_rank seed
        gradient_accumulation_steps fp16 loss_scale log_freq checkpoint_activations resume_from_checkpoint resume_step
        num_steps_per_checkpoint skip_checkpoint phase2 allreduce_post_accumulation allreduce_post_accumulation_fp16
        phase1_end_step do_train json-summary use_env disable_progress_bar use_ib deepspeed_zero_stage
        gpu_memory_limit_gb schedule vocab_file amp resume_phase2 init_loss_scale steps_this_run profile profile-start
        num_workers no_dense_sequence_output disable_jit_fusions cuda_graphs
        partition_optimizer gpu_feed_batch_size gradient_accumulation_passes""",
    "bertPrep.py, create_pretraining_data.py and LDDL": """
        action dataset input_files n_training_shards n_test_shards fraction_test_set segmentation_method n_processes
        random_seed dupe_factor masked_lm_prob max_seq_length max_predictions_per_seq do_lower_case vocab_file
        skip_wikiextractor interactive_json_config_generator input_file output_file bert_model short_seq_prob
        do_whole_word_mask schedule local-n-workers local-threads-per-worker wikipedia books common-crawl sink
        output-format wikipedia-lang target-seq-length block-size num-blocks bin-size sample-ratio seed
        duplicate-factor vocab-file masking masked-lm-ratio indir""",
    "bert_config.json": """
        hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act hidden_dropout_prob
        attention_probs_dropout_prob max_position_embeddings type_vocab_size initializer_range vocab_size
        output_all_encoded_layers""",
    "NVIDIA run_squad.py and run_glue.py": """
        predict_file doc_stride max_query_length do_predict predict_batch_size n_best_size max_answer_length
        verbose_logging version_2_with_negative null_score_diff_threshold eval_script skip_cache data_dir task_name
        do_train do_eval do_lower_case server_ip server_port""",
    "the Hungarian recipe, TurkuNLP and SentencePiece": """
        input_folder output_file input_file num_shards vocab_size input_sentence_size shuffle_input_sentence
        character_coverage model_type model_prefix add-chars no-special keep-special output unused invert limit language
        langdetect word-chars SAMPLED_SENTENCE_NUM""",
    "Intel": """
        input_dir output_dir eval_dir eval_iter_start_samples eval_iter_samples num_eval_examples init_checkpoint
        init_tf_checkpoint model_name_or_path config_name learning_rate max_predictions_per_seq train_batch_size
        eval_batch_size weight_decay_rate opt_lamb_beta_1 opt_lamb_beta_2 max_steps max_samples_termination
        warmup_proportion warmup_steps start_warmup_step log_freq checkpoint_activations resume_from_checkpoint
        keep_n_most_recent_checkpoints num_samples_per_checkpoint min_samples_to_start_checkpoints skip_checkpoint
        phase2 do_train bert_config_path target_mlm_accuracy train_mlm_accuracy_window_size
        num_epochs_to_generate_seeds_for
        use_gradient_as_bucket_view dense_seq_output bf16 fp16 bf32 fp8 benchmark gradient_accumulation_steps seed
        model_type local_rank world_size profile ipex inductor resume_checkpoint min_learning_rate
        max_steps_for_scheduler no_ddp converge dist_lamb rank unpad skip_exchange_padding benchmark_steps dist_backend
        dist-url dist-port large-first-bucket disable-broadcast-buffers multi_instance bucket_cap device amp lamb adamw
        num-iterations compile sdp kineto_profile OUTPUT_DIR PRECISION DATASET_DIR CONFIG_FILE CHECKPOINT_DIR
        DNNL_MAX_CPU_ISA MALLOC_CONF""",
    "MLCommons": """
        max_seq_length max_predictions_per_seq train_batch_size eval_batch_size optimizer learning_rate poly_power
        num_train_steps num_warmup_steps start_warmup_step save_checkpoints_steps iterations_per_loop max_eval_steps
        use_tpu num_tpu_cores num_gpus steps_per_update keep_checkpoint_max lamb_weight_decay_rate lamb_beta_1
        lamb_beta_2 log_epsilon clip_by_global_norm_after_gradient_allreduce""",
    "Azure": """
        task model_checkpoint tensorboard_log_dir deepspeed num_train_epochs output_dir disable_tqdm local_rank
        evaluation_strategy logging_strategy per_device_train_batch_size gradient_accumulation_steps
        per_device_eval_batch_size learning_rate adam_beta1 adam_beta2 weight_decay warmup_steps fp16 logging_steps
        optim train_micro_batch_size_per_gpu n_ctx autotuning arg_mappings flops_profiler nebula zero_optimization
        gradient_clipping train_batch_size""",
    "transformers TrainingArguments": """
        output_dir overwrite_output_dir do_train do_eval train_micro_batch_size_per_gpu
        per_device_train_batch_size per_device_eval_batch_size gradient_accumulation_steps auto_find_batch_size
        num_train_epochs max_steps learning_rate lr_scheduler_type lr_scheduler_kwargs warmup_ratio warmup_steps
        optim weight_decay adam_beta1 adam_beta2 adam_epsilon max_grad_norm label_smoothing_factor fp16 bf16
        tf32 fp16_opt_level gradient_checkpointing torch_compile seed data_seed full_determinism logging_steps
        logging_strategy logging_dir report_to run_name disable_tqdm eval_strategy evaluation_strategy
        eval_steps eval_on_start save_strategy save_steps save_total_limit load_best_model_at_end
        metric_for_best_model greater_is_better resume_from_checkpoint ignore_data_skip dataloader_num_workers
        dataloader_drop_last dataloader_pin_memory group_by_length train_sampling_strategy remove_unused_columns
        use_cpu no_cuda local_rank ddp_backend ddp_timeout fsdp deepspeed push_to_hub hub_model_id""",
    "transformers run_mlm.py": """
        model_name_or_path config_name config_overrides tokenizer_name train_file validation_file
        validation_split_percentage dataset_name max_seq_length mlm_probability line_by_line pad_to_max_length
        preprocessing_num_workers overwrite_cache max_train_samples max_eval_samples use_fast_tokenizer
        model_revision token trust_remote_code torch_dtype low_cpu_mem_usage dataset_config_name streaming""",
}
EVERY = [(program, name) for program, names in PARAMETERS.items() for name in names.split()]


@each_row(("program", "name"), EVERY)
def test_every_parameter_is_told_of(program: str, name: str) -> None:
    facts = explain(Recipe, name)
    assert facts.get("elsewhere") or facts.get("meaning"), f"{program}: {name}"


def test_each_is_a_parameter_of_theirs_not_only_a_key_of_ours() -> None:
    missing = {name for _, name in EVERY if name.replace("-", "_") not in originals()}
    assert missing == set()


POSITIONS = {
    "run_pretraining.sh": """
        1 train_batch_size 2 learning_rate 3 precision 4 num_gpus 5 warmup_proportion 6 train_steps
        7 save_checkpoint_steps 8 resume_training 9 create_logfile 10 accumulate_gradients
        11 gradient_accumulation_steps 12 seed 13 job_name 14 allreduce_post_accumulation
        15 allreduce_post_accumulation_fp16 17 train_batch_size_phase2 18 learning_rate_phase2
        19 warmup_proportion_phase2 20 train_steps_phase2 21 gradient_accumulation_steps_phase2 22 DATA_DIR_PHASE1
        23 DATA_DIR_PHASE2 24 CODEDIR 25 init_checkpoint""",
    "run_pretraining_ort.sh": """
        1 train_batch_size 2 learning_rate 3 precision 4 num_gpus 5 warmup_proportion 6 train_steps
        7 save_checkpoint_steps 8 resume_training 9 create_logfile 10 accumulate_gradients
        11 gradient_accumulation_steps 12 seed 13 job_name 14 allreduce_post_accumulation
        15 allreduce_post_accumulation_fp16 17 train_batch_size_phase2 18 learning_rate_phase2
        19 warmup_proportion_phase2 20 train_steps_phase2 22 DATA_DIR_PHASE1 23 DATA_DIR_PHASE2 24 CODEDIR
        25 init_checkpoint 26 gpu_memory_limit_gb 27 deepspeed_zero_stage""",
    "run_squad.sh": """
        1 init_checkpoint 2 epochs 3 batch_size 4 learning_rate 5 precision 6 num_gpu 7 seed 8 squad_dir 9 vocab_file
        10 OUT_DIR 11 mode 12 CONFIG_FILE 13 max_steps""",
    "run_glue.sh": """
        1 init_checkpoint 2 mode 3 max_steps 4 batch_size 5 learning_rate 6 precision 7 num_gpu 8 epochs
        9 warmup_proportion 10 seed 11 vocab_file 12 CONFIG_FILE""",
}
"""Those of NVIDIA's tasks are of 2020 (commit 4733603)."""
ARGUMENTS = [
    (script, number, name)
    for script, listed in POSITIONS.items()
    for number, name in zip(listed.split()[::2], listed.split()[1::2], strict=True)
]


@each_row(("script", "number", "name"), ARGUMENTS)
def test_every_argument_is_told_of_by_its_position(script: str, number: str, name: str) -> None:
    facts = explain_argument(f"{script} {number}")
    assert facts is not None
    told = [said for what, said in facts.items() if what.endswith(f" {number}, {name}")]
    assert told and all(told)


def test_the_trap_of_argument_11_is_told() -> None:
    """ONNX Runtime's phase 2 reads the accumulation of phase 1."""
    facts = explain_argument("run_pretraining_ort.sh 11")
    assert facts is not None
    first, second = facts.values()
    assert "train.phases.0.micro_batch" in first and "train.phases.1.micro_batch" in second


def test_versions_of_a_script_are_told_apart() -> None:
    """The README of NVIDIA's newer script still has a slot that the script has not: all after it moved."""
    assert [what.rpartition(", ")[2] for what in explain_argument("run_pretraining.sh 17") or {}] == [
        "train_batch_size_phase2",
        "learning_rate_phase2",
    ]


def test_an_argument_of_a_task_says_which_key_holds_it_or_why_none_does() -> None:
    glue = explain_argument("scripts/run_glue.sh 6")
    assert glue is not None
    assert list(glue) == ["NVIDIA's run_glue.sh 6, precision", "NVIDIA's run_glue.sh of 2024 6, task_name"]
    assert [next(iter(told)) for told in glue.values()] == ["train.precision", "train.objective.task"]
    for told in (explain_argument("run_squad.sh 1") or {}).values():
        assert told == {"no key": explain(Recipe, "n_best_size")["elsewhere"]["NVIDIA run_squad.py"].partition(": ")[2]}


def test_what_has_a_key_is_not_said_to_have_none() -> None:
    """Gradients in 16 bits, and the task, whose key was once the corpus."""
    told = explain(Recipe, "allreduce_post_accumulation_fp16")
    assert told["key"] == "train.engine.reduction" and "no key" not in told["elsewhere"]["NVIDIA run_pretraining.py"]
    assert (
        "nothing passes it on"
        in told["elsewhere"]["ONNX Runtime run_pretraining_ort.py (in addition to NVIDIA's options)"]
    )
    assert explain(Recipe, "task")["key"] == "train.objective.task"
    assert (
        "NCCL_SOCKET_IFNAME"
        in explain(Recipe, "use_ib")["elsewhere"][
            "ONNX Runtime run_pretraining_ort.py (in addition to NVIDIA's options)"
        ]
    )


def test_the_command_line_asks_for_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["bertwright", "check", "--explain", "run_pretraining.sh 2"])
    with pytest.raises(SystemExit) as exited:
        main()
    assert not exited.value.code and "train.phases.0.learning_rate" in capsys.readouterr().out


@each_row(
    ("asked", "says"),
    [
        ("run_pretraining.sh 99", "run_pretraining.sh reads 32 arguments. Give a number from 1 to 32."),
        ("run_squid.sh 3", "the arguments of run_squid.sh are unknown; give an argument of "),
    ],
)
def test_an_argument_that_is_none_is_an_error(asked: str, says: str) -> None:
    with pytest.raises(RecipeError) as caught:
        explain_argument(asked)
    assert says in str(caught.value)
