#!/bin/sh
# The first process of the container. It becomes what it is given: a verb of bertwright with its words, or one of a few
# programs. Where nothing or overrides alone are given, Intel's variables (PRECISION, DATASET_DIR, OUTPUT_DIR,
# CHECKPOINT_DIR, CONFIG_FILE, SCRIPT) say what is trained: the recipe is written into OUTPUT_DIR, and the run folder is
# OUTPUT_DIR/model_save, which CHECKPOINT_DIR names for phase 2.
set -eu

case "${1-}" in
bertwright | torchrun | python | sh | bash) exec "$@" ;;
"" | --help | *=*) ;; # --help is the image's own word where none is given
*) exec bertwright "$@" ;;
esac
[ -n "${PRECISION-}${DATASET_DIR-}${OUTPUT_DIR-}${CHECKPOINT_DIR-}${CONFIG_FILE-}${SCRIPT-}" ] || exec bertwright "$@"

refuse() {
    echo "$@" >&2
    exit 2
}

missing=
[ -n "${DATASET_DIR-}" ] || missing=DATASET_DIR
[ -n "${OUTPUT_DIR-}" ] || missing="${missing:+$missing and }OUTPUT_DIR"
[ -z "$missing" ] || refuse "$missing must be set, too: some of Intel's variables are set (PRECISION, DATASET_DIR," \
    "OUTPUT_DIR, CHECKPOINT_DIR, CONFIG_FILE, SCRIPT), so this container trains what they say. Set it, or give a verb."
[ "${1-}" != --help ] || shift
mkdir -p "$OUTPUT_DIR" || refuse "OUTPUT_DIR=$OUTPUT_DIR cannot be made. Mount a folder there that user $(id -u) may write to."

# Where no override names the vocabulary, it is that of phase 1, or the vocab.txt beside the data or the configuration.
overrides=" $*"
if [ "${overrides#* vocab.file=}" = "$overrides" ]; then
    vocabulary=
    for file in "${CHECKPOINT_DIR:+$CHECKPOINT_DIR/vocab/vocab.txt}" "$DATASET_DIR/vocab.txt" \
        "${CONFIG_FILE:+$(dirname "${CONFIG_FILE-}")/vocab.txt}"; do
        [ -n "$vocabulary" ] || [ ! -f "$file" ] || vocabulary=$file
    done
    [ -n "$vocabulary" ] || refuse "There is no vocab.txt in DATASET_DIR=$DATASET_DIR or beside CONFIG_FILE. Put the one" \
        "there that the data was made with (bertwright vocab --download google-uncased gets MLCommons'), or add vocab.file=FILE."
    set -- "vocab.file=$vocabulary" "$@"
fi

recipe=$OUTPUT_DIR/$(basename "${SCRIPT:-run_bert_pretrain_phase1.sh}" .sh).toml
# The first process of a container ignores signals that it has no trap for, and `run` would begin all the same.
trap 'exit 75' TERM HUP USR1 USR2
trap 'exit 130' INT
# Written once: a container that is started again goes on with the same recipe.
if [ -f "$recipe" ]; then
    # Without comments: one of them names the file.
    written=$(bertwright translate --environment | sed '/^#/d')
    [ "$written" = "$(sed '/^#/d' "$recipe")" ] || echo "$recipe is used as it is, although the variables say something else now." \
        "Remove it to have it written again." >&2
else
    bertwright translate --environment --out "$recipe"
fi
exec bertwright run "$recipe" "$@" --out "$OUTPUT_DIR/model_save"
