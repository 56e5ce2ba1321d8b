# the ONNX Runtime example's README.md: data and training in one
export BERT_PREP_WORKING_DIR=./workspace/BERT/data/
python ./workspace/BERT/data/bertPrep.py --action download --dataset google_pretrained_weights
mkdir -p ./workspace/BERT/data/download/wikicorpus_en
cd ./workspace/BERT/data/download/wikicorpus_en
wget https://dumps.wikimedia.org/enwiki/latest/enwiki-latest-pages-articles.xml.bz2
bzip2 -dv enwiki-latest-pages-articles.xml.bz2
mv enwiki-latest-pages-articles.xml wikicorpus_en.xml
cd ../../../../..
sed -i "s/path_to_wikiextractor_in_container = '/path_to_wikiextractor_in_container = './g" ./workspace/BERT/data/bertPrep.py
python ./workspace/BERT/data/bertPrep.py --action text_formatting --dataset wikicorpus_en
python ./workspace/BERT/data/bertPrep.py --action sharding --dataset wikicorpus_en
sed -i "s/python \/workspace\/bert/python .\/workspace\/BERT/g" ./workspace/BERT/data/bertPrep.py
python ./workspace/BERT/data/bertPrep.py --action create_hdf5_files --dataset wikicorpus_en --max_seq_length 128 \
  --max_predictions_per_seq 20 --vocab_file ./workspace/BERT/data/download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt --do_lower_case 1
python ./workspace/BERT/data/bertPrep.py --action create_hdf5_files --dataset wikicorpus_en --max_seq_length 512 \
--max_predictions_per_seq 80 --vocab_file ./workspace/BERT/data/download/google_pretrained_weights/uncased_L-24_H-1024_A-16/vocab.txt --do_lower_case 1
cd workspace/BERT
bash ../../nvidia-bert/docker/launch.sh
bash /workspace/bert/scripts/run_pretraining_ort.sh
