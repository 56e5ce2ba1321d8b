#!/bin/sh
# The first process of the container. It becomes what it is given: a verb of bertwright with its words, or one of a few
# programs. Where nothing or overrides alone are given, Intel's variables (PRECISION, DATASET_DIR, OUTPUT_DIR,
# CHECKPOINT_DIR, CONFIG_FILE, SCRIPT) say what is trained.
set -eu

case "${1-}" in
bertwright | torchrun | python | sh | bash) exec "$@" ;;
"" | --help | *=*) ;; # --help is the image's own word where none is given
*) exec bertwright "$@" ;;
esac
[ -n "${PRECISION-}${DATASET_DIR-}${OUTPUT_DIR-}${CHECKPOINT_DIR-}${CONFIG_FILE-}${SCRIPT-}" ] || exec bertwright "$@"
missing=
[ -n "${DATASET_DIR-}" ] || missing=DATASET_DIR
[ -n "${OUTPUT_DIR-}" ] || missing="${missing:+$missing and }OUTPUT_DIR"
if [ -n "$missing" ]; then
    echo "$missing must be set, too: some of Intel's variables are set (PRECISION, DATASET_DIR, OUTPUT_DIR," \
        "CHECKPOINT_DIR, CONFIG_FILE, SCRIPT), so this container trains what they say. Set it, or give a verb." >&2
    exit 2
fi
[ "${1-}" != --help ] || shift

recipe=$OUTPUT_DIR/$(basename "${SCRIPT:-run_bert_pretrain_phase1.sh}" .sh).toml
# The first process of a container ignores signals that it has no trap for, and `run` would begin all the same.
trap 'exit 75' TERM HUP USR1 USR2
trap 'exit 130' INT
# Written once: a container that is started again goes on with the same recipe.
[ -f "$recipe" ] || bertwright translate --environment --out "$recipe"
[ ! -f "$DATASET_DIR/vocab.txt" ] || set -- "vocab.file=$DATASET_DIR/vocab.txt" "$@"
exec bertwright run "$recipe" "$@" --out "$OUTPUT_DIR"
