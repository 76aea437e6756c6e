# make demo   train, compare and draw on real data, in under two minutes
# make test   all tests
# make check  format, lint, types, layers
# make docs   write the pages of all methods and calibrators anew
# make bench  time of losses and metrics beside plain torch; bench-peers, test-peers: beside other libraries, too
# make bench-posthoc  fit time and NLL of every calibrator beside other libraries

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-peers check format docs bench bench-peers bench-posthoc clean

demo: .venv/demo
	$(BIN)/confide demo

# One thread in each of two processes: the tensors of tests are too small to share.
test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: .venv/dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: .venv/dev
	$(BIN)/python scripts/make_method_pages.py
	$(BIN)/python scripts/make_calibrator_page.py

bench: .venv/dev
	$(BIN)/python benchmarks/losses.py
	$(BIN)/python benchmarks/metrics.py

bench-peers: .venv-peers/ready
	.venv-peers/bin/python benchmarks/losses.py --peers
	.venv-peers/bin/python benchmarks/metrics.py --peers

test-peers: .venv-peers/ready
	.venv-peers/bin/python -m pytest tests/metrics/test_metric_peers.py

bench-posthoc: .venv-posthoc-peers/ready
	OMP_NUM_THREADS=1 .venv-posthoc-peers/bin/python benchmarks/posthoc.py

.venv/demo: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[cli,plots]'
	touch $@

.venv/dev: pyproject.toml constraints.txt | .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ .venv/demo

.venv:
	$(PYTHON) -m venv .venv

# An environment of their own: torchvision, which some of them need, breaks other packages next to a CPU build of torch.
.venv-peers/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install --quiet --constraint constraints.txt --editable '.[cli,plots]' \
		monai==1.6.1 kornia==0.9.0 label-relaxation==0.2.1 timm==1.0.31 torchvision==0.28.0 \
		torch-uncertainty==0.13.0 lightning scikit-learn netcal==1.4.0 relplot==1.0.3 torchmetrics==1.9.0 \
		uncertainty-calibration==0.1.4 pytest hypothesis
	touch $@

.venv-posthoc-peers/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-posthoc-peers
	.venv-posthoc-peers/bin/pip install --quiet --constraint constraints.txt --editable '.[sklearn]' \
		betacal==1.1.0 netcal==1.4.0 numba==0.68.1 probmetrics==1.3.0 venn-abers==1.5.4
	touch $@

clean:
	rm -rf .venv .venv-peers .venv-posthoc-peers build dist .mypy_cache .ruff_cache .pytest_cache
