"""Writes torch.txt and jax.txt beside this file: the public names of PyTorch's and JAX's operations, one a line, aliases behind.

usage: python3 names.py SAMPLES JAX

SAMPLES  a folder of PyTorch 1.13's operator samples, one safetensors file an operator (its metadata has the name and its aliases)
JAX      a checkout of github.com/jax-ml/jax (the lists were made at cec06d116c05f0d52adfceee3d3b730fdbcb0ce5)
"""

import ast
import json
import pathlib
import re
import struct
import sys

here = pathlib.Path(__file__).parent

# What the samples leave out: random operators, methods of tensors only, and functions that no sample was written for.
more = """
Tensor.bool Tensor.coalesce Tensor.copy_ Tensor.float Tensor.half Tensor.int Tensor.to_dense Tensor.to_sparse Tensor.to_sparse_coo
Tensor.to_sparse_csc Tensor.to_sparse_csr
affine_grid_generator arange as_strided as_strided_scatter bartlett_window bernoulli blackman_window channel_shuffle cholesky_solve cond
conj_physical empty empty_like full geqrf hamming_window hann_window is_complex kaiser_window logaddexp logaddexp2 logdet
lstm_cell gru_cell rnn_tanh_cell multinomial normal ormqr rand rand_like randint randn randn_like randperm resolve_conj resolve_neg
slogdet sparse.mm sparse.to_sparse_semi_structured sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor triangular_solve
lu_unpack unravel_index vander view_as_complex
fft.fftfreq fft.rfftfreq special.gammainc special.gammaincc
distributions.Bernoulli distributions.Beta distributions.Categorical distributions.Cauchy distributions.Chi2
distributions.Exponential distributions.Gamma distributions.Geometric distributions.Gumbel distributions.Laplace
distributions.LogNormal distributions.Normal distributions.Poisson distributions.StudentT distributions.Uniform
nn.functional.adaptive_max_pool1d_with_indices nn.functional.adaptive_max_pool2d_with_indices
nn.functional.adaptive_max_pool3d_with_indices nn.functional.affine_grid nn.functional.alpha_dropout
nn.functional.binary_cross_entropy_with_logits nn.functional.channel_shuffle nn.functional.conv3d nn.functional.dropout
nn.functional.dropout1d nn.functional.dropout2d nn.functional.dropout3d nn.functional.feature_alpha_dropout nn.functional.fold
nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool2d_with_indices nn.functional.fractional_max_pool3d
nn.functional.fractional_max_pool3d_with_indices nn.functional.gumbel_softmax nn.functional.lp_pool1d nn.functional.lp_pool2d
nn.functional.lp_pool3d nn.functional.max_pool1d_with_indices nn.functional.max_pool2d_with_indices
nn.functional.max_pool3d_with_indices nn.functional.rms_norm nn.functional.rrelu nn.functional.scaled_dot_product_attention
nn.functional.triplet_margin_with_distance_loss nn.functional.unfold
""".split()

# Operators of the samples that are methods of tensors only.
methods = """
bfloat16 bool byte cdouble cfloat chalf char contiguous double expand expand_as fill float half index_put int long new_full new_ones
new_zeros put repeat reshape_as short sum_to_size to unfold view view_as zero_
""".split()


def torch(samples: pathlib.Path) -> set[str]:
    """A line an operator: its name and its aliases."""
    names: dict[str, list[str]] = {name: [] for name in more}
    for file in samples.rglob("*.safetensors"):
        data = file.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        operator = json.loads(json.loads(data[8 : 8 + length])["__metadata__"]["op"])
        name = operator["name"]
        if not name.startswith("_"):
            names[f"Tensor.{name}" if name in methods else name] = sorted(operator["aliases"])
    return {" ".join([name, *aliases]) for name, aliases in names.items()}


modules = {
    "jax/numpy/__init__.py": "jnp",
    "jax/numpy/linalg.py": "jnp.linalg",
    "jax/numpy/fft.py": "jnp.fft",
    "jax/lax/__init__.py": "lax",
    "jax/lax/linalg.py": "lax.linalg",
    "jax/nn/__init__.py": "jax.nn",
    "jax/random.py": "jax.random",
    "jax/ops/__init__.py": "jax.ops",
    "jax/image/__init__.py": "jax.image",
    "jax/scipy/special.py": "jax.scipy.special",
    "jax/scipy/linalg.py": "jax.scipy.linalg",
    "jax/scipy/signal.py": "jax.scipy.signal",
    "jax/scipy/stats/__init__.py": "jax.scipy.stats",
}


def jax(folder: pathlib.Path) -> set[str]:
    found = {"jax.Array.at"}
    for path, module in modules.items():
        for statement in ast.walk(ast.parse((folder / path).read_text())):
            if not isinstance(statement, ast.ImportFrom):
                continue
            for name in (alias.asname for alias in statement.names if alias.asname is not None):
                # Types, primitives and modules are not operations.
                if not re.match(r"_|.*_p$|[A-Z]", name):
                    found.add(f"{module}.{name}")
    return found


if __name__ == "__main__":
    samples, checkout = map(pathlib.Path, sys.argv[1:])
    for name, names in [("torch", torch(samples)), ("jax", jax(checkout))]:
        (here / f"{name}.txt").write_text("".join(f"{each}\n" for each in sorted(names)))
