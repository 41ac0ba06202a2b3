"""Break the library on purpose, one place at a time, and see whether the tests notice: `make mutants`.

    python tests/mutants.py                 # every mutation: about an hour of one idle core
    python tests/mutants.py losses dropout  # those whose file or sentence contains one of the words

A mutation is one exact replacement in a file, with the tests that must fail after it. The checkout
stays as it is: its files are copied to a temporary folder, with changes that are not committed. One
line a mutation; the exit status is 1 if one survives, no longer applies, or its tests are gone.
Where code moves, its entries move with it, and an entry is deleted only together with what it
breaks.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FAILED = 1  # pytest's exit code


class Mutant(NamedTuple):
    """A sentence on what is broken, the file, the old and the new text, and tests, after tests/."""

    breaks: str
    file: str
    old: str
    new: str
    tests: str


M = Mutant
STAGES = "config/test_arrival.py::test_every_setting_of_a_stage_reaches_its_weights"
# fmt: off
MUTANTS = [
    # importance
    M("AMI divides by L, not by L - 1", "cdmae/importance/ami.py",
      "1.0 / max(1, window - 1)", "1.0 / max(1, window)", "importance/test_importance.py"),
    M("PMI keeps the smaller sum of two ways of cutting", "cdmae/importance/ami.py",
      "cut = np.max([best[n]", "cut = np.min([best[n]", "importance/test_importance.py"),
    M("PMI's pooled total is the largest total, not their sum", "cdmae/importance/ami.py",
      "np.full(window, totals.sum())", "np.full(window, totals.max())", "importance/test_importance.py"),
    M("AMI's mean at the edges is not doubled", "cdmae/importance/ami.py",
      "2.0 / np.maximum(1.0, number) if edges", "1.0 / np.maximum(1.0, number) if edges", "importance/test_importance.py"),
    M("AMI leaves out n-grams that end at the word", "cdmae/importance/ami.py",
      "for word in (slice(len(gained)), slice(order, None)):", "for word in (slice(len(gained)),):", "importance/test_importance.py"),
    M("n-grams that are new to the table count 2", "cdmae/importance/ami.py",
      "counts[order - 1, : len(found)] = 1", "counts[order - 1, : len(found)] = 2", "importance"),
    M("a long piece is never divided further", "cdmae/importance/ami.py",
      "best.append(np.maximum(whole, cut) if", "best.append(whole if", "importance/test_importance.py"),
    M("counts of all orders are divided by the number of words", "cdmae/importance/ami.py",
      "- np.log(totals)[:, None]", "- np.log(totals[0])", "importance/test_importance.py"),
    M("an n-gram that leaves its segment counts in the mean", "cdmae/importance/ami.py",
      "exists = counts[order, : len(gained)] > 0", "exists = np.ones(len(gained), bool)", "importance/test_importance.py"),
    M("n-grams across blocks are lost", "cdmae/importance/ngrams.py",
      "own = words[first : first + BLOCK + order - 1]", "own = words[first : first + BLOCK]", "importance/test_importance.py"),
    M("an n-gram does not know the order of its words", "cdmae/tokens/words.py",
      "return hash_array(ngrams[:size]) + words[order - 1 :]", "return ngrams[:size] + words[order - 1 :]", "importance/test_importance.py"),
    # masking
    M("the number of masks is rounded, not rounded down", "cdmae/masking/__init__.py",
      "np.floor(candidates.sum(axis=1) * ratio + 1e-9)", "np.floor(candidates.sum(axis=1) * ratio + 0.5)", "masking/test_masking.py"),
    M("the number of masks is not guarded against rounding", "cdmae/masking/__init__.py",
      "np.floor(candidates.sum(axis=1) * ratio + 1e-9)", "np.floor(candidates.sum(axis=1) * ratio)", "masking/test_masking.py"),
    M("special tokens may be masked", "cdmae/masking/__init__.py",
      "candidates = inside & ~vocabulary.special[ids]", "candidates = inside", "masking/test_masking.py"),
    M("of equal values those on the right are masked", "cdmae/masking/strategies/_ranking.py",
      "np.cumsum(ties, axis=1)", "np.cumsum(ties[:, ::-1], axis=1)[:, ::-1]", "masking/test_masking.py"),
    M("each word-piece has noise of its own, though the unit is the word", "cdmae/masking/strategies/importance.py",
      'if unit == "word":', "if False:", "masking/test_masking.py"),
    M("infinite noise leaves the importance in", "cdmae/masking/strategies/importance.py",
      "        return noise\n", "        return batch.values + noise\n", "masking/test_masking.py"),
    M("the share of random tokens is not added to that of [MASK]", "cdmae/masking/__init__.py",
      "replaced = side.mask_share + side.random_share", "replaced = side.mask_share", "masking/test_masking.py"),
    M("random tokens may be special ones", "cdmae/masking/__init__.py",
      "ordinary = vocabulary.ordinary\n", "ordinary = np.arange(vocabulary.size)\n", "masking/test_masking.py"),
    M("tokens that the encoder masks do not count in the decoder's ratio", "cdmae/masking/__init__.py",
      " - (batch.candidates & first).sum(axis=1)", "", "masking"),
    M("weighted masks have the noise of rare words turned", "cdmae/masking/strategies/_ranking.py",
      "noise = -np.log(-np.log(uniform))", "noise = np.log(-np.log(uniform))", "masking/test_masking.py masking/test_word_masking.py"),
    M("random tokens come from the bits that choose the share", "cdmae/masking/__init__.py",
      "ordinary[(bits & LOWER) *", "ordinary[(bits >> HALF) *", "masking/test_masking.py masking/test_word_masking.py"),
    M("a title counts as a passage of its own in idf", "cdmae/masking/strategies/idf.py",
      "once = np.unique(passages * size + words)", "once = passages * size + words", "masking/test_masking.py masking/test_word_masking.py"),
    M("the longest collocations have half their share", "cdmae/masking/strategies/pmi_span.py",
      "    shares[-1] *= 2\n", "", "masking/test_word_masking.py"),
    M("the last skipped word, not the first, completes the number", "cdmae/masking/strategies/whole_word.py",
      "            elif skipped < 0:\n", "            else:\n", "masking/test_word_masking.py"),
    M("a collocation counts in its share as often as it occurs", "cdmae/masking/strategies/pmi_span.py",
      "np.cumsum(1 / counts[order - 1, at])", "np.cumsum(1 / np.ones(len(at)))", "masking/test_word_masking.py"),
    M("the tail of the noise is positive only", "cdmae/masking/noise.py",
      "return EDGE + beyond if x > 0.0 else -EDGE - beyond", "return EDGE + beyond", "masking/test_masking.py"),
    M("the salt of a random stream is ignored", "cdmae/masking/noise.py",
      "_scramble(keys[passage] + salt * GOLDEN)", "_scramble(keys[passage])", "masking/test_masking.py"),
    M("the first pieces of longer words count as stop-words", "cdmae/masking/terms.py",
      "whole[begins] = ends - begins == 1", "whole[begins] = True", "masking/test_word_masking.py"),
    M("the share of stop-words is that of all words, not of the masked ones", "cdmae/masking/terms.py",
      "found[masked].mean()", "found.mean()", "masking/test_word_masking.py"),
    # pre-training
    M("masks are equal in every epoch", "cdmae/pretraining/reader.py",
      "masking.key(self.seed, purpose, epoch) for epoch in different.tolist()", "masking.key(self.seed, purpose, 0) for epoch in different.tolist()", "pretraining/test_batches.py"),
    M("the decoder draws as the encoder", "cdmae/pretraining/reader.py",
      "keys = self.keys(name, texts.epochs)", 'keys = self.keys("encoder", texts.epochs)', "pretraining/test_batches.py"),
    M("the order of passages is equal in every epoch", "cdmae/pretraining/reader.py",
      'seed_of(self.seed, "order", epoch)', 'seed_of(self.seed, "order", 0)', "pretraining/test_batches.py"),
    M("where an epoch ends within a batch, passages have the masks of the other epoch", "cdmae/pretraining/reader.py",
      "rows[order], epochs[order])", "rows[order], epochs)", "pretraining/test_batches.py"),
    M("losses are means over micro-batches, not over the global batch", "cdmae/pretraining/batches.py",
      "1 / max(1, total), np.float32", "1 / max(1, len(chosen)), np.float32", "pretraining/test_objectives.py models/test_architectures.py"),
    M("the bottleneck has no projection", "cdmae/pretraining/objectives/mae.py",
      "return self.projection(h_c).to(h_c.dtype)", "return h_c", "pretraining/test_objectives.py"),
    M("dropout of pre-training is equal in every step", "cdmae/pretraining/trainer.py",
      '"dropout", step + 1, index, group.rank)', '"dropout", 1, index, group.rank)', "training/test_draws.py"),
    M("dropout of pre-training is equal in every micro-batch", "cdmae/pretraining/trainer.py",
      '"dropout", step + 1, index, group.rank)', '"dropout", step + 1, 0, group.rank)', "training/test_draws.py"),
    M("dropout of pre-training ignores the seed", "cdmae/pretraining/trainer.py",
      'setup.generator(device, self.seed, "dropout"', 'setup.generator(device, 0, "dropout"', "training/test_draws.py"),
    M("random weights ignore the seed", "cdmae/pretraining/trainer.py",
      'setup.seed_of(seed, "start"))', 'setup.seed_of(0, "start"))', "pretraining/test_pretrain.py"),
    M("epochs are rounded down to steps", "cdmae/pretraining/trainer.py",
      "math.ceil(settings.epochs * passages / settings.batch)", "int(settings.epochs * passages / settings.batch)", "pretraining/test_pretrain.py"),
    M("DupMAE's bags are not means over words", "cdmae/pretraining/objectives/dupmae.py",
      "bags / number)", "bags)", "pretraining/test_objectives.py"),
    M("Condenser's early layers are the late ones", "cdmae/pretraining/objectives/condenser.py",
      "layers[: self.early], states", "layers[self.early :], states", "pretraining/test_objectives.py"),
    M("a position of RetroMAE's decoder sees itself", "cdmae/pretraining/objectives/retromae.py",
      "    hidden[:, np.arange(length), np.arange(length)] = True\n", "", "pretraining/test_published.py pretraining/test_objectives.py"),
    M("all positions of RetroMAE's decoder share a mask", "cdmae/pretraining/objectives/retromae.py",
      'repeated["rows"] * MOST + position', 'repeated["rows"] * MOST', "pretraining/test_published.py pretraining/test_objectives.py"),
    M("MASTER's second pass masks what the first does", "cdmae/pretraining/objectives/master.py",
      'replace(sides["encoder"], ratio=settings.complement_ratio)', 'sides["encoder"]', "pretraining/test_objectives.py config/test_arrival.py"),
    M("crops begin at the start of the passage", "cdmae/pretraining/objectives/contriever.py",
      "np.floor(draws[:, 2:] * (lengths - sizes + 1))", "np.floor(0 * draws[:, 2:] * (lengths - sizes + 1))", "pretraining/test_published.py"),
    M("LexMAE reads [SEP]", "cdmae/pretraining/objectives/lexmae.py",
      "special = torch.cat([starts[:-1], starts[1:] - 1])", "special = starts[:-1]", "pretraining/test_objectives.py"),
    M("the second span may be longer than a passage", "cdmae/pretraining/objectives/_contexts.py",
      "second = np.minimum(lengths - first, self.length)", "second = lengths - first", "pretraining/test_published.py"),
    M("SimLM samples by the numbers that choose the masks", "cdmae/pretraining/objectives/simlm.py",
      "SAMPLE = 3  #", "SAMPLE = 1  #", "pretraining/test_published.py"),
    M("a frozen generator drops out", "cdmae/pretraining/objectives/simlm.py",
      "dropout = generator if self.learns else None", "dropout = generator", "pretraining/test_published.py"),
    M("the two passes of a contrastive objective have different dropout", "cdmae/pretraining/trainer.py",
      "generators = [dropout(index) for index", "generators = [dropout(index + 1) for index", "training/test_draws.py"),
    # the loop
    M("gradients are not clipped", "cdmae/training/loop.py",
      "parameters, settings.max_grad_norm, foreach=True", "parameters, 1e9, foreach=True", "training/test_loop.py"),
    M("weights do not decay", "cdmae/training/loop.py",
      "adam = setup.adamw(parameters, settings.weight_decay)", "adam = setup.adamw(parameters, 0.0)", "training/test_loop.py"),
    M("biases decay, too", "cdmae/training/setup.py",
      '{"params": vectors, "weight_decay": 0.0}', '{"params": vectors, "weight_decay": weight_decay}', "training/test_loop.py"),
    M("AdamW has a beta2 of .98", "cdmae/training/setup.py",
      "torch.optim.AdamW(groups, lr=0.0, fused=True)", "torch.optim.AdamW(groups, lr=0.0, fused=True, betas=(0.9, 0.98))", "training/test_loop.py"),
    M("gradients are not cleared between steps", "cdmae/training/loop.py",
      "                adam.zero_grad()\n", "", "training/test_loop.py"),
    M("the learning rate is one step ahead", "cdmae/training/loop.py",
      "                    done - 1, schedule.steps", "                    done, schedule.steps", "training/test_loop.py"),
    M("the first step of the warm-up has a learning rate", "cdmae/training/setup.py",
      "return peak * step / warmup", "return peak * (step + 1) / warmup", "training/test_loop.py"),
    M("a resumed training forgets the sums of its curve", "cdmae/training/loop.py",
      'sums = before["sums"]', "sums = {}", "pretraining/test_pretrain.py"),
    M("a resumed training forgets AdamW's moments", "cdmae/training/loop.py",
      'parts = {"network": task.network, "optimiser": adam, "scaler": scaler}', 'parts = {"network": task.network, "scaler": scaler}', "pretraining/test_pretrain.py"),
    M("a resumed training begins with the first batch", "cdmae/training/loop.py",
      "enumerate(task.batches(saved.step), saved.step + 1)", "enumerate(task.batches(0), saved.step + 1)", "training/test_loop.py pretraining/test_pretrain.py"),
    M("the time of a training leaves out earlier runs", "cdmae/training/loop.py",
      "begun = time.monotonic() - before[\"seconds\"]", "begun = time.monotonic()", "training/test_loop.py"),
    M("the learning rate does not fall to 0", "cdmae/training/setup.py",
      "max(0, steps - step) / max(1, steps - warmup)", "max(0, steps - step) / max(1, steps)", "training/test_loop.py"),
    M("the curve has the numbers of skipped steps", "cdmae/training/loop.py",
      "                if not skipped:\n                    sums", "                if True:\n                    sums", "training/test_loop.py"),
    M("a training that collapsed goes on", "cdmae/training/loop.py",
      'elif warm and numbers["spread"] < COLLAPSED', 'elif False and numbers["spread"] < COLLAPSED', "training/test_loop.py"),
    M("random numbers do not depend on their purpose", "cdmae/training/setup.py",
      "repr((seed, purpose, *numbers))", "repr((seed, *numbers))", "training/test_draws.py"),
    M("the last row of the curve is divided by the interval", "cdmae/training/loop.py",
      "value / count for name", "value / schedule.interval for name", "training/test_loop.py"),
    M("a CPU scores in the precision of the training", "cdmae/training/setup.py",
      'return "fp32" if on.type == "cpu" else precision(name, on)', "return precision(name, on)", "finetuning/test_folders.py"),
    # fine-tuning: losses
    M("the divergence is that of the student from the teacher", "cdmae/finetuning/losses.py",
      "    target = log_softmax(teacher, dim=-1)\n    return (target.exp() * (target - log_softmax(student, dim=-1))).sum(-1).mean()",
      "    target = log_softmax(student, dim=-1)\n    return (target.exp() * (target - log_softmax(teacher, dim=-1))).sum(-1).mean()", "finetuning/test_losses.py"),
    M("alpha weighs the teacher's loss", "cdmae/finetuning/losses.py",
      "return taught + alpha * contrastive", "return alpha * taught + contrastive", "finetuning/test_losses.py"),
    M("false negatives stay in the sum of the loss", "cdmae/finetuning/losses.py",
      "    if excluded is not None:\n        scores", "    if False:\n        scores", "finetuning/test_losses.py"),
    M("the passage-centric loss ignores the temperature", "cdmae/finetuning/losses.py",
      "group_scores(passages[:, 0] / temperature, others)", "group_scores(passages[:, 0], others)", "finetuning/test_losses.py"),
    M("in-batch margins are divided by one too many", "cdmae/finetuning/losses.py",
      "errors.sum(1).mean() / (passages - 1)", "errors.sum(1).mean() / passages", "finetuning/test_losses.py"),
    M("R-Drop has one direction twice", "cdmae/finetuning/losses.py",
      "kl(first, second) + kl(second, first)", "kl(first, second) + kl(first, second)", "finetuning/test_losses.py finetuning/test_trainers.py"),
    M("FLOPS are the mean of squares", "cdmae/finetuning/losses.py",
      "vectors.abs().mean(0).square().sum()", "vectors.abs().square().mean(0).sum()", "finetuning/test_gradients.py"),
    M("the dense half of a unified head has the temperature of the sparse one", "cdmae/finetuning/objectives.py",
      "cooled = replace(stage, temperature=stage.dense_temperature)", "cooled = stage", f"finetuning/test_gradients.py {STAGES}[Unified]"),
    M("the retriever ignores its teacher's temperature", "cdmae/finetuning/objectives.py",
      "torch.as_tensor(batch.teacher, device=scores.device) / stage.teacher_temperature", "torch.as_tensor(batch.teacher, device=scores.device)", f"{STAGES}[Multi]"),
    M("the reranker ignores its teacher's temperature", "cdmae/finetuning/reranker.py",
      "cooled = teacher / stage.teacher_temperature", "cooled = teacher", f"finetuning/test_trainers.py {STAGES}[Reranker]"),
    M("the curve's accuracy is that of the worst passage", "cdmae/finetuning/objectives.py",
      "(scores.argmax(-1) == 0)", "(scores.argmin(-1) == 0)", "finetuning/test_teacher.py"),
    M("a chunk's gradient is not scaled by its share", "cdmae/finetuning/reranker.py",
      "(loss * share).backward()", "loss.backward()", "finetuning/test_trainers.py"),
    M("the reranker learns from the easiest negatives", "cdmae/finetuning/reranker.py",
      "np.argsort(-logits, axis=1", "np.argsort(logits, axis=1", "finetuning/test_trainers.py"),
    M("the idf of a word-piece is that of its occurrences", "cdmae/models/heads/table.py",
      "pairs = np.unique(rows * width + ids)", "pairs = rows * width + ids", "finetuning/test_sparse.py"),
    M("queries with weights from a table are regularised", "cdmae/finetuning/regulariser.py",
      "            query_weight = 0.0\n", "            pass\n", "finetuning/test_gradients.py"),
    M("all processes train the learnt weights of all queries", "cdmae/finetuning/retriever.py",
      "torch.arange(group.rank, batch.queries, group.size)", "torch.arange(batch.queries)", "finetuning/test_gradients.py"),
    M("R-Drop adds both list-wise losses", "cdmae/finetuning/losses.py",
      "(listwise(first) + listwise(second)) / 2", "(listwise(first) + listwise(second))", "finetuning/test_losses.py finetuning/test_trainers.py"),
    M("the passage-centric loss keeps false negatives", "cdmae/finetuning/losses.py",
      "    if excluded is not None:  # the positive", "    if False:  # the positive", "finetuning/test_losses.py finetuning/test_teacher.py"),
    M("the regulariser begins at full weight", "cdmae/finetuning/regulariser.py",
      "((step + 1) / max(1, self.warmup)) ** 2)", "1.0)", "finetuning/test_sparse.py"),
    M("a negative product of [CLS] vectors counts 0", "cdmae/finetuning/late.py",
      "put(queries.pieces.values >= 0, device)", "put(queries.pieces.values >= -100, device)", "finetuning/test_gradients.py"),
    M("the sparse half of a unified head has a passage-centric loss", "cdmae/finetuning/objectives.py",
      "_of_head(vectors[:, :words], batch, replace(stage, passage_weight=0.0))", "_of_head(vectors[:, :words], batch, stage)", "finetuning/test_gradients.py"),
    M("DeepCT reads the first positive in every epoch", "cdmae/finetuning/recall.py",
      "turn = epoch % positives.lengths[rows]", "turn = 0 * positives.lengths[rows]", "finetuning/test_sparse.py"),
    M("flops_warmup 1 is one step, not all of them", "cdmae/finetuning/regulariser.py",
      "share = self.stage.flops_warmup <= 1", "share = self.stage.flops_warmup < 1", "finetuning/test_sparse.py"),
    M("the reranker may leave out the positive", "cdmae/finetuning/reranker.py",
      "    logits[:, 0] = np.inf  # of the positive\n", "", "finetuning/test_trainers.py"),
    M("with R-Drop, the teacher teaches the first pass only", "cdmae/finetuning/reranker.py",
      "sum(losses.kl(each, cooled) for each in logits) / len(logits)", "losses.kl(logits[0], cooled)", "finetuning/test_trainers.py"),
    M("a unified teacher ignores the weight of its dense head", "cdmae/finetuning/scoring.py",
      "            asked[:, words:] *= model.dense_weight\n", "            pass\n", "finetuning/test_teacher.py"),
    M("of a query and a passage of equal length, the passage is cut more", "cdmae/models/sequences.py",
      "np.where(query_lengths > passage_lengths,", "np.where(query_lengths >= passage_lengths,", "models/test_sequences.py"),
    M("learnt query weights may be negative", "cdmae/models/heads/table.py",
      "weights.to(scales) * functional.relu(1 + PACE * scales)", "weights.to(scales) * (1 + PACE * scales)", "finetuning/test_gradients.py"),
    # fine-tuning: draws
    M("copies of a positive's text are negatives", "cdmae/finetuning/selection.py",
      "negatives = mined[~_among(mined, barred, texts)]", "negatives = mined[~_among(mined, barred)]", "finetuning/test_groups.py"),
    M("a passage of grade 1 is not relevant", "cdmae/finetuning/selection.py",
      'relevant = judged["grade"] > 0', 'relevant = judged["grade"] > 1', "finetuning/test_groups.py"),
    M("negatives are mined one rank deeper", "cdmae/finetuning/selection.py",
      "run.best(drawing.depth)", "run.best(drawing.depth + 1)", "finetuning/test_groups.py"),
    M("the positive is the same in every epoch", "cdmae/finetuning/groups.py",
      "positives[epoch % len(positives)]", "positives[0]", "finetuning/test_groups.py"),
    M("a query's own positive may be excluded", "cdmae/finetuning/groups.py",
      "        excluded[rows, rows * groups.shape[1]] = False\n", "", "finetuning/test_groups.py"),
    M("a batch's false negatives are not excluded", "cdmae/finetuning/retriever.py",
      "batch.excluded = data.examples.excluded(rows, drawn)", "batch.excluded = np.zeros((len(rows), drawn.size), bool)", "finetuning/test_gradients.py"),
    M("groups are equal in every epoch", "cdmae/finetuning/groups.py",
      'seed_of(self.drawing.seed, "group", epoch, query)', 'seed_of(self.drawing.seed, "group", 0, query)', "finetuning/test_groups.py"),
    M("random negatives are equal for all queries", "cdmae/finetuning/groups.py",
      'seed_of(self.drawing.seed, "random negatives", query)', 'seed_of(self.drawing.seed, "random negatives", 0)', "finetuning/test_groups.py"),
    M("random negatives ignore the seed", "cdmae/finetuning/groups.py",
      'seed_of(self.drawing.seed, "random negatives", query)', 'seed_of(0, "random negatives", query)', "finetuning/test_groups.py"),
    M("the order of queries is equal in every epoch", "cdmae/finetuning/groups.py",
      'seed_of(self.drawing.seed, "order", epoch)', 'seed_of(self.drawing.seed, "order", 0)', "finetuning/test_groups.py"),
    M("epochs of a stage are rounded down to steps", "cdmae/finetuning/task.py",
      "max(1, round(stage.epochs * per_epoch))", "max(1, int(stage.epochs * per_epoch))", "finetuning/test_trainers.py"),
    M("the new head of a reranker ignores the seed", "cdmae/finetuning/task.py",
      'seed=setup.seed_of(seed, "head")', 'seed=setup.seed_of(0, "head")', "training/test_draws.py"),
    M("dropout of the retriever ignores the seed", "cdmae/finetuning/retriever.py",
      'setup.generator(device, self.seed, "dropout", step, chunk, group.rank)', 'setup.generator(device, 0, "dropout", step, chunk, group.rank)', "training/test_draws.py"),
    M("dropout of the retriever is equal in every chunk", "cdmae/finetuning/retriever.py",
      'setup.generator(device, self.seed, "dropout", step, chunk, group.rank)', 'setup.generator(device, self.seed, "dropout", step, 0, group.rank)', "training/test_draws.py"),
    M("dropout of the reranker is equal in every step", "cdmae/finetuning/reranker.py",
      'setup.generator(device, self.seed, "dropout", step, chunk, group.rank)', 'setup.generator(device, self.seed, "dropout", 0, chunk, group.rank)', "training/test_draws.py"),
    M("a query without mined negatives gets no random ones", "cdmae/finetuning/groups.py",
      "number = max(self.drawing.random_negatives, self.drawing.group - 1 - len(mined))", "number = self.drawing.random_negatives", "finetuning/test_groups.py"),
    M("random negatives may be relevant", "cdmae/finetuning/groups.py",
      " & ~np.isin(self.texts[some], barred)]", "]", "finetuning/test_groups.py"),
    M("random negatives may be mined ones", "cdmae/finetuning/groups.py",
      "some = some[~np.isin(some, mined) & ", "some = some[", "finetuning/test_groups.py"),
    M("bins of margins are as likely as their negatives are many", "cdmae/finetuning/teacher.py",
      "return 1 / (sizes[bin_of] * np.count_nonzero(sizes))", "return np.full(len(margins), 1 / len(margins))", "finetuning/test_teacher.py"),
    M("a teacher scores the draws of one epoch", "cdmae/finetuning/groups.py",
      "for epoch in range(epochs)]", "for epoch in range(1)]", "finetuning/test_groups.py retrieval/test_inference.py"),
    M("excluded judgments may be negatives", "cdmae/finetuning/selection.py",
      'barred = judged[relevant | (judged["grade"] == EXCLUDED)]', "barred = judged[relevant]", "finetuning/test_groups.py"),
    M("train_queries takes the first queries", "cdmae/finetuning/selection.py",
      "beyond[left[np.argsort(shares)[count:]]] = True", "beyond[left[count:]] = True", "finetuning/test_groups.py"),
    M("teacher's doubtful passages are not left out by the positive's score", "cdmae/finetuning/teacher.py",
      "found = expit(scores - scores[:, :1]) > stage.denoise", "found = expit(scores) > stage.denoise", "finetuning/test_teacher.py"),
    M("labels ignore the temperature", "cdmae/finetuning/labels.py",
      "scores[among].astype(np.float64) / self.temperature", "scores[among].astype(np.float64)", "finetuning/test_teacher.py"),
    M("batches of topics are not shuffled", "cdmae/finetuning/groups.py",
      "return divided[generator.permutation(batches)].ravel()", "return divided.ravel()", "finetuning/test_groups.py"),
    M("topics follow each other in the same order in every epoch", "cdmae/finetuning/groups.py",
      "places = generator.permutation(self.topics.max(initial=0) + 1)", "places = np.arange(self.topics.max(initial=0) + 1)", "finetuning/test_groups.py"),
    M("copies of a relevant text in the batch are negatives", "cdmae/finetuning/groups.py",
      "np.nonzero(self.texts[barred.values][:, None] == batch)", "np.nonzero(barred.values[:, None] == groups.ravel())", "finetuning/test_groups.py"),
    M("topics of queries ignore the seed", "cdmae/finetuning/topics.py",
      'setup.seed_of(seed, "topics")', 'setup.seed_of(0, "topics")', "finetuning/test_teacher.py"),
    # retrieval
    M("every process encodes every shard", "cdmae/retrieval/vectors.py",
      "[group.rank :: group.size]", "[:]", "retrieval/test_inference.py"),
    M("vectors that other code has encoded are kept", "cdmae/retrieval/vectors.py",
      "SHARD, length, code]", "SHARD, length]", "retrieval/test_inference.py"),
    M("queries are compared with vectors of other settings", "cdmae/commands/answering.py",
      "if keys and not any(", "if False and not any(", "retrieval/test_external.py"),
    M("a run of distances is read as scores", "cdmae/retrieval/trec.py",
      "if len(rises) and (rises > 0).all():", "if False:", "retrieval/test_trec.py"),
    M("the last of equal scores are kept otherwise than by row", "cdmae/retrieval/ranking.py",
      "ties = ties[np.argsort(rows[ties])]", "ties = ties[np.argsort(-rows[ties])]", "retrieval/test_search.py"),
    M("ties are ordered otherwise than by row", "cdmae/retrieval/ranking.py",
      "np.lexsort((rows, -scores))", "np.lexsort((-rows, -scores))", "retrieval/test_search.py"),
    M("what is not reranked does not come below", "cdmae/retrieval/reranking.py",
      "below = values[-1:].repeat(len(rest)) - np.arange", "below = values[:1].repeat(len(rest)) - np.arange", "retrieval/test_inference.py"),
    M("reciprocal ranks begin at 0", "cdmae/retrieval/fusion.py",
      "np.arange(1, len(passages) + 1)", "np.arange(0, len(passages))", "retrieval/test_fusion.py"),
    M("fused scores are not scaled to begin at 0", "cdmae/retrieval/fusion.py",
      "return (scores - low) / (high - low)", "return scores / high", "retrieval/test_fusion.py"),
    M("of weights with equal means the least even ones win", "cdmae/evaluation/tuning.py",
      "(means[at], -max(tried[at]))", "(means[at], max(tried[at]))", "retrieval/test_fusion.py"),
    M("a measure without cut-off is tuned at depth 10", "cdmae/evaluation/tuning.py",
      'params.get("cutoff", depth))', 'params.get("cutoff", 10))', "retrieval/test_fusion.py evaluation"),
    M("equal scores of a TREC run are not ordered by its ranks", "cdmae/retrieval/trec.py",
      "depth, ties=ranks)", "depth)", "retrieval/test_trec.py"),
    M("k1 and b are exchanged for a single question", "cdmae/retrieval/lucene.py",
      "similarities.BM25Similarity\")(k1, b)", "similarities.BM25Similarity\")(b, k1)", "retrieval/test_bm25.py"),
    M("BM25 reads every language as English", "cdmae/retrieval/bm25.py",
      "analysed = scripts.lucene_language(language)", "analysed = \"en\"", "languages/test_scripts.py"),
    M("sentences end only at ASCII's marks", "cdmae/languages/scripts.py",
      "|[。！？｡।॥။។]", "|[.]", "languages/test_scripts.py"),
    M("accents of every script are stripped", "cdmae/tokens/tokenise.py",
      "strip_accents and scripts.is_latin(texts)", "True", "languages/test_scripts.py"),
    M("a vocabulary holds 1,000 letters", "cdmae/tokens/tokenise.py",
      "by_frequency[: max(ALPHABET, needed)]", "by_frequency[:ALPHABET]", "languages/test_scripts.py"),
    M("word-pieces of Thai are not words", "cdmae/tokens/vocabulary.py",
      "is_first | is_unspaced", "is_first", "languages/test_scripts.py"),
    M("prompts of a model do not reach its training", "cdmae/proposal/encoders.py",
      'prompts.get("query") or ""', '""', "proposal/test_proposal.py"),
    M("a passage outside a list is as good as its last one", "cdmae/retrieval/fusion.py",
      '"convex": -1e-6', '"convex": 0.0', "retrieval/test_fusion.py"),
    M("held-out values come from the weights of their own half", "cdmae/evaluation/tuning.py",
      "others = values[:, 1 - half :: 2]", "others = values[:, half::2]", "retrieval/test_fusion.py evaluation/test_best.py"),
    M("candidates are not cut at candidates_depth", "cdmae/retrieval/search.py",
      "read_run(target.runs[0]).best(candidates_depth) if", "read_run(target.runs[0]) if", "retrieval/test_inference.py::test_of_candidates_the_best_are_searched"),
    M("collections with different lengths share vectors", "cdmae/retrieval/search.py",
      '(folder / "passages.parquet").resolve(), length', '(folder / "passages.parquet").resolve(), 0', "retrieval/test_inference.py"),
    M("a teacher does not score the draws of a partial epoch", "cdmae/retrieval/reranking.py",
      'math.ceil(settings["epochs"])', 'max(1, int(settings["epochs"]))', "retrieval/test_inference.py"),
    M("a teacher keeps the scores of another stage's draws", "cdmae/retrieval/reranking.py",
      "[read, settings, PIECE, code]", "[read, PIECE, code]", "retrieval/test_inference.py"),
    M("a reranked run has the scores of another run's pieces", "cdmae/retrieval/reranking.py",
      "(model, *(target.runs[0] for target in targets), *tokens)", "(model, *tokens)", "retrieval/test_inference.py"),
    M("a reranked run has the scores of other queries", "cdmae/retrieval/reranking.py",
      "key = [read, [digest(path) for path in queries],", "key = [read,", "retrieval/test_inference.py"),
    M("a noisy leader hides a system that is always better", "cdmae/evaluation/best.py",
      "if not any(lead.significant for lead in leads.values()):", "if not leads[best].significant:", "evaluation/test_best.py"),
    M("one frequent word decides a language", "cdmae/languages/scripts.py",
      "_LEAST_DIFFERENT = 4", "_LEAST_DIFFERENT = 1", "languages/test_scripts.py"),
    M("products that differ by rounding are lost", "cdmae/retrieval/kinds/dense.py",
      "enters = scores >= (sure - slack[left])[:, None]", "enters = scores >= sure[:, None]", "retrieval/test_search.py"),
    M("excluded passages are not replaced by deeper ones", "cdmae/retrieval/targets.py",
      'queries["text"].tolist(), depth + extra)', 'queries["text"].tolist(), depth)', "retrieval/test_targets.py"),
    M("impacts are rounded down", "cdmae/retrieval/impacts.py",
      "np.rint(whole.data)", "np.floor(whole.data)", "retrieval/test_search.py"),
    M("docT5query draws the same numbers for every piece", "cdmae/retrieval/expansion.py",
      '"texts", number, begin)', '"texts", begin)', "retrieval/test_expansion.py"),
    M("vectors that are compared by dot products have length 1", "cdmae/retrieval/external.py",
      'normalize_embeddings=model.similarity_fn_name == "cosine"', "normalize_embeddings=True", "retrieval/test_external.py"),
    M("the last stage, not the deepest one, decides the depth of mined runs", "cdmae/config/systems.py",
      "max(depths.get((name, *on), 0), depth)", "depth", "rules/test_graph.py"),
    # evaluation and report
    M("the noise of few seeds is that of many", "cdmae/evaluation/expected.py",
      "stats.t.ppf(0.975, len(values) - 1)", "1.96", "evaluation/test_expected.py"),
    M("the relevant grade of a split is one lower", "cdmae/config/schema.py",
      "str(measure(rel=grade))", "str(measure(rel=grade - 1))", "rules/test_graph.py config/test_config.py report"),
    M("Holm's correction may decrease", "cdmae/evaluation/significance.py",
      "np.maximum.accumulate(multiplied)", "multiplied", "evaluation/test_significance.py"),
    M("corrected p-values may exceed 1", "cdmae/evaluation/significance.py",
      "np.minimum(np.maximum.accumulate(multiplied), 1.0)", "np.maximum.accumulate(multiplied)",
      "evaluation/test_significance.py"),
    M("Holm does not correct for the pairs with the same reference", "cdmae/report/comparisons.py",
      "families.setdefault(pair.reference, [])", "families.setdefault(pair, [])", "report/test_numbers.py"),
    M("the paper's claim on stop-words is reversed", "cdmae/report/paper/claims.py",
      '"worse" if more > 0 else "better"', '"better" if more > 0 else "worse"', "report/test_paper.py"),
    M("the answer says nothing of queries that favour BM25", "cdmae/report/sections/use.py",
      'over.verdict == "worse"', 'over.verdict == "better"', "report/test_recommendation.py"),
    M("a tuned fusion is held out with the first seed alone", "cdmae/report/facts.py",
      '"fusion", "system", seeds.replicate(self.config).systems', '"fusion", "system", self.config.systems',
      "report/test_recommendation.py"),
    M("costs leave out the encoder before", "cdmae/report/costs.py",
      "[entry.encoder, *systems.before(facts.config, entry.encoder)]", "[entry.encoder]",
      "report/test_recommendation.py"),
    M("made queries choose although people asked enough", "cdmae/config/splits.py",
      "queries.get(reported, 0) >= FEW", "queries.get(reported, 0) >= 10**9", "report/test_recommendation.py"),
    M("absent relevant passages count once", "cdmae/evaluation/measures.py",
      "        if name in grades:\n", "        if False:\n", "evaluation/test_measures.py"),
    M("the variance of a set of queries has no weight", "cdmae/evaluation/significance.py",
      "[weight * gap.mean(axis=1) for", "[gap.mean(axis=1) for", "evaluation/test_significance.py"),
    M("intervals are not corrected", "cdmae/evaluation/significance.py",
      "1 - SIGNIFICANT / self.tests", "1 - SIGNIFICANT", "evaluation/test_significance.py"),
    M("seeds have one degree of freedom too many", "cdmae/evaluation/significance.py",
      "freedoms.append(len(of_seeds) - 1)", "freedoms.append(len(of_seeds))", "evaluation/test_significance.py"),
    M("of equally complex systems the first competes", "cdmae/evaluation/best.py",
      "candidate = means[alike].idxmax()", "candidate = alike[0]", "evaluation/test_best.py"),
    M("tuned values choose", "cdmae/evaluation/best.py",
      'if about.get("on") != list(split) or about.get("measure") != measure:', "if True:", "evaluation/test_best.py"),
    M("variances are divided by n", "cdmae/evaluation/significance.py",
      "float(values.var(ddof=1)) / len(values)", "float(values.var(ddof=0)) / len(values)", "evaluation/test_significance.py"),
    M("a grade below 0 is not clipped", "cdmae/evaluation/measures.py",
      'qrels["grade"].clip(lower=0)', 'qrels["grade"]', "evaluation/test_measures.py"),
    # data and seeds
    M("queries with an irrelevant passage in common are held out together", "cdmae/collections/leakage.py",
      'qrels[(qrels["grade"] > 0) & qrels', 'qrels[(qrels["grade"] >= 0) & qrels', "collections/test_leakage.py"),
    M("what is held out ignores its seed", "cdmae/collections/leakage.py",
      'f"holdout {seed} {ids[group]}"', 'f"holdout {ids[group]}"', "collections/test_leakage.py collections/test_pairs.py"),
    M("judgments without a relevant passage are accepted", "cdmae/collections/judged.py",
      "if frame.empty or frame[\"grade\"].max() < 1:", "if frame.empty:", "collections/test_mistakes.py"),
    M("an id may repeat", "cdmae/collections/judged.py",
      "    if len(repeated):", "    if False:", "collections/test_mistakes.py"),
    M("replicas of a stage keep the first seed", "cdmae/config/seeds.py",
      'of_seed = {} if section == "systems" else {"seed": seed}', 'of_seed = {"seed": seed} if section == "encoders" else {}', "config/test_replicas.py"),
    M("files are not synced before they are renamed", "cdmae/files.py",
      "            os.fsync(descriptor)", "            pass", "test_files.py training/test_states.py"),
    M("dev is reported and test decides", "cdmae/config/splits.py",
      "reported = max(rest, key=_first_to_report", "reported = min(rest, key=_first_to_report", "config/test_config.py"),
    M("texts in other case are held out apart", "cdmae/collections/leakage.py",
      "lambda text: key_of(text) or text", "lambda text: text", "collections/test_leakage.py"),
    M("several passages have the same pseudo query", "cdmae/collections/sources/pseudo.py",
      '        frame = frame.drop_duplicates("text", ignore_index=True)\n', "", "collections/test_made.py"),
    M("the rest of a passage needs one more word", "cdmae/collections/sources/pseudo.py",
      "len(words(rest)) >= LEAST_REST", "len(words(rest)) > LEAST_REST", "collections/test_made.py"),
    M("what a version added is left out of documents", "cdmae/collections/documents.py",
      "is_kept = self.name not in _VERSIONS or", "is_kept = self.name not in _VERSIONS and", "collections/test_text.py"),
    M("a question is answered by all files of the same name", "cdmae/collections/questions.py",
      "if len(files) > 1:", "if len(files) > 9:", "collections/test_text.py"),
    M("the log of a job ends with the signal to all of its processes", "cdmae/job.py",
      """survives = \"\"\"trap "" INT TERM USR1;""", """survives = \"\"\"trap "" INT USR1;""", "test_job.py"),
    M("an item of a list becomes a query", "cdmae/collections/sources/pseudo.py",
      "startswith((INDENT, DASH))", "startswith(INDENT)", "collections/test_made.py"),
    M("what was dropped from code leaves a mark", "cdmae/collections/documents.py",
      'element.text_content().replace(_GAP, "")', "element.text_content()", "collections/test_text.py"),
    M("saving may take all of the time", "cdmae/training/state.py",
      "(now - begun) / SAVING_SHARE", "(now - begun) * SAVING_SHARE", "training/test_states.py"),
    M("what a killed training shared stays", "cdmae/training/state.py",
      "SHARED, ignore_errors=True)\n        yield", "SHARED / 'x', ignore_errors=True)\n        yield", "training/test_states.py"),
    M("the end of a text is shaded", "cdmae/importance/shading.py",
      "Span(text[end:], 0)", "Span(text[end:], 1)", "importance/test_importance.py"),
    M("a small importance is not the largest", "cdmae/importance/shading.py",
      "if value > 0], default", "if value > 1], default", "importance/test_importance.py"),
    M("a passage of documents has one word less than `words`", "cdmae/collections/sources/text.py",
      "if passage and length + own > words:", "if passage and length + own >= words:", "collections/test_text.py"),
    M("of repeated judgments the lowest grade counts", "cdmae/collections/judged.py",
      'judged.groupby(keys)["grade"].transform("max")', 'judged.groupby(keys)["grade"].transform("min")', "collections/test_pairs.py"),
    M("of judgments that a file repeats the lowest grade counts", "cdmae/collections/judged.py",
      'frame.groupby(pair)["grade"].transform("max")', 'frame.groupby(pair)["grade"].transform("min")', "collections/test_published_layouts.py"),
    M("a split whose name ends like that of a dev split is for choosing", "cdmae/config/splits.py",
      "return _DEV.match(split) is not None", "return _DEV.search(split) is not None", "config/test_config.py"),
    M("train is evaluated where no stage trains on it", "cdmae/config/load.py",
      '    trained.add(rules_of(Stage)["split"].default)\n', "", "config/test_config.py"),
    M("parts of a fusion are searched to the depth of a stage", "cdmae/config/systems.py",
      "mine(part, on, config.evaluation.depth)", "mine(part, on, depth)", "config/test_config.py"),
    M("the digest of a folder ignores the names of its files", "cdmae/files.py",
      "json.dumps([[name, digest(path / name)] for name in shown])", "json.dumps([[digest(path / name)] for name in shown])", "test_files.py"),
    # workflow
    M("a tokenised collection does not wait for its passages", "workflow/rules/data.smk",
      'passages="<results>/collections/{collection}/passages.parquet",', 'passages=ancient("<results>/collections/{collection}/passages.parquet"),', "rules/test_graph.py"),
    M("the pieces of vectors are deleted after a run", "workflow/hooks.py",
      'if folder.parent.name != "vectors":', "if True:", "rules/test_hooks.py"),
    M("the content of inputs does not name a state", "cdmae/job.py",
      "made = [job.params.settings, job.params.code, [digest(path) for path in job.input]]", "made = [job.params.settings, job.params.code]", "test_job.py"),
    M("the code does not name a state", "cdmae/job.py",
      "made = [job.params.settings, job.params.code, [digest(path) for path in job.input]]", "made = [job.params.settings, [digest(path) for path in job.input]]", "test_job.py"),
    M("imports in the else of TYPE_CHECKING are missed", "workflow/fingerprint.py",
      "return node.orelse if", "return None if", "rules/test_fingerprint.py"),
    M("the __init__ of a package is missed", "workflow/fingerprint.py",
      "found = [parent]", "found = []", "rules/test_fingerprint.py"),
    M("a job gets more GPUs than a step has texts", "workflow/rules/common.smk",
      "return gpus(min(8, per_step))(wildcards)", "return gpus(8)(wildcards)", "rules/test_graph.py"),
    M("CDMAE_DEVICE=cpu requests GPUs", "workflow/rules/common.smk",
      'most if device != "cpu" and is_wide(wildcards) else 0', "most if is_wide(wildcards) else 0", "rules/test_graph.py"),
    M("BM25 reads a collection's passages in the language of its queries", "workflow/rules/common.smk",
      "settings.collections[settings.owner(name)].language", "settings.collections[name].language", "rules/test_graph.py"),
    M("steps after take_step are planned", "cdmae/plan/plan.py",
      "steps = encoder.take_step or encoder.steps or whole", "steps = encoder.steps or encoder.take_step or whole", "plan/test_planning.py"),
    M("any number of connections is accepted", "cdmae/serving/server.py",
      "        limit_concurrency=CONNECTIONS,\n", "", "serving/test_hostile.py"),
    M("a failed job asks for the same memory", "workflow/rules/common.smk",
      "return size * (min(attempt, 2) if is_training else attempt)", "return size", "rules/test_graph.py"),
    M("a narrow network gets eight cores", "workflow/rules/common.smk",
      "return 8 if is_wide(wildcards) else 1", "return 8", "rules/test_graph.py"),
    M("functions of the config are no code", "workflow/fingerprint.py",
      "hashes[name], imported = _of_config(name) if name.startswith(CONFIG) else _module(name)", 'hashes[name], imported = ("", []) if name.startswith(CONFIG) else _module(name)', "rules/test_fingerprint.py"),
    M("the words of a question in Hindi end at vowel signs", "cdmae/serving/answers.py",
      "words = set(pairs_of_characters(question).split())", 'words = set(re.findall(r"\\w+", question.lower()))', "serving/test_pages.py"),
    M("a plan leaves out the searches of heads", "cdmae/plan/plan.py",
      "if system.encoded_by:", 'if system.kind in ("retriever", "external"):', "plan/test_planning.py"),
    M("a file replaces a folder", "cdmae/files.py",
      "if part.is_dir():", "if part.is_dir() or path.is_dir():", "test_files.py"),
    M("states of trainings without a result are deleted", "workflow/hooks.py",
      "if not output.exists():", "if False:", "rules/test_hooks.py"),
    M("memory requests ignore the files of folders", "workflow/rules/common.smk",
      'files = path.rglob("*") if path.is_dir() else [path]', "files = [path]", "rules/test_graph.py"),
    M("the content of templates is no reason to run again", "workflow/fingerprint.py",
      "[(file.name, digest(file)) for file in found]", "[file.name for file in found]", "rules/test_fingerprint.py"),
]
# fmt: on


def copied(folder: Path) -> None:
    """Copy the files that git knows, and those that it does not ignore, into an empty folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, found.split("\0")):
        if os.path.lexists(ROOT / name):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    (folder / ".venv").symlink_to(ROOT / ".venv")


def pytest(folder: Path, tests: list[str], *options: str, cache: Path) -> int:
    """Run tests in the copy; return the exit code.

    cache: of compiled functions. numba does not see that a function of another file was changed,
    and Python does not see a change within a second.
    """
    command = [sys.executable, "-m", "pytest", "-m", "not workflow", *options]
    command += [f"tests/{test}" for test in tests]
    values = {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache)}
    environment = {**os.environ, **values, "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if not options and ended.returncode:
        print(ended.stdout[-4000:])
    return ended.returncode


def stale(mutant: Mutant) -> str:
    """Say why a mutation cannot be tried; empty if it can."""
    path = ROOT / mutant.file
    if not path.exists() or path.read_text(encoding="utf-8").count(mutant.old) != 1:
        return "its text is not in the file once"
    files = [test.partition("::")[0] for test in mutant.tests.split()]
    gone = [file for file in files if not (ROOT / "tests" / file).exists()]
    return f"there is no tests/{gone[0]}" if gone else ""


def outcome(mutant: Mutant, folder: Path, cache: Path) -> str:
    """Break the copy, run the tests, and mend it."""
    path = folder / mutant.file
    text = path.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as own:
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        fresh = Path(own) if "@compiled" in text else cache
        code = pytest(folder, mutant.tests.split(), "-x", cache=fresh)
        path.write_text(text, encoding="utf-8")
    return {0: "SURVIVES", FAILED: "killed"}.get(code, f"PYTEST ENDS WITH {code}")


def main() -> None:
    """Run the mutations that the arguments choose."""
    words = sys.argv[1:] or [""]
    chosen = [
        mutant
        for mutant in MUTANTS
        if any(word in f"{mutant.file} {mutant.breaks}" for word in words)
    ]
    alive = 0
    for mutant in filter(stale, chosen):
        alive += 1
        print(f"STALE  {mutant.file}: {mutant.breaks}: {stale(mutant)}", flush=True)
    fresh = [mutant for mutant in chosen if not stale(mutant)]
    with tempfile.TemporaryDirectory() as own:
        folder, cache = Path(own, "copy"), Path(own, "cache")
        copied(folder)
        tests = dict.fromkeys(test for mutant in fresh for test in mutant.tests.split())
        if tests and pytest(folder, list(tests), cache=cache):
            sys.exit("the tests fail before anything is broken; mend them first")
        for mutant in fresh:
            begun = time.monotonic()
            found = outcome(mutant, folder, cache)
            alive += found != "killed"
            seconds = time.monotonic() - begun
            print(f"{found:8} {seconds:4.0f} s  {mutant.file}: {mutant.breaks}", flush=True)
    print(f"{len(chosen)} mutations, {alive} not killed")
    sys.exit(bool(alive))


if __name__ == "__main__":
    main()
