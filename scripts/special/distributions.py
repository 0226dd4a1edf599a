#!/usr/bin/env python3
# Log-probabilities by PyTorch: test/fixtures/distributions.json.
#   python3 scripts/special/distributions.py
import json, os
import torch
import torch.distributions as D

f64 = lambda *v: torch.tensor(v, dtype=torch.float64)
points = f64(0.1, 0.4, 0.7, 0.95)
reals = f64(-3.0, -0.2, 0.5, 6.0)
positive = f64(0.05, 0.5, 2.0, 9.0)
whole = f64(0, 1, 3, 12)

CASES = {
    'normal': (D.Normal, [0.5, 2.0], reals), 'laplace': (D.Laplace, [0.5, 2.0], reals), 'gumbel': (D.Gumbel, [0.5, 2.0], reals),
    'cauchy': (D.Cauchy, [0.5, 2.0], reals), 'logNormal': (D.LogNormal, [0.5, 0.8], positive),
    'uniform': (lambda a, b: D.Uniform(a, b, validate_args=False), [0.2, 0.8], points),
    'exponential': (D.Exponential, [1.5], positive), 'gamma': (D.Gamma, [2.5, 0.7], positive), 'chi2': (D.Chi2, [3.0], positive),
    'beta': (D.Beta, [2.5, 0.7], points), 'studentT': (D.StudentT, [4.5], reals), 'bernoulli': (D.Bernoulli, [0.3], f64(0, 1, 0, 1)),
    'geometric': (D.Geometric, [0.3], whole), 'poisson': (D.Poisson, [3.5], whole),
}

out = {}
for name, (make, parameters, xs) in CASES.items():
    of = make(*[torch.tensor(p, dtype=torch.float64) for p in parameters])
    out[name] = {
        'parameters': parameters, 'x': xs.tolist(), 'logProb': [str(v) if v in (float('inf'), -float('inf')) else v for v in of.log_prob(xs).tolist()],
        'mean': None if name == 'cauchy' else of.mean.item(), 'variance': None if name == 'cauchy' else of.variance.item(),
    }
logits = f64(0.3, -1.0, 2.0)
of = D.Categorical(logits=logits)
out['categorical'] = {'parameters': [logits.tolist()], 'x': [0, 1, 2], 'logProb': of.log_prob(torch.tensor([0, 1, 2])).tolist(), 'mean': None, 'variance': None}

path = os.path.join(os.path.dirname(__file__), '../../test/fixtures/distributions.json')
with open(path, 'w') as file:
    file.write('{\n' + ',\n'.join('%s:%s' % (json.dumps(k), json.dumps(v)) for k, v in out.items()) + '\n}\n')
