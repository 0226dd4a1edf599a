// A layer computes with what is its own: trainable tensors that nobody sees (private fields, closures, Maps, objects of other classes)
// are an error where they are read, rather than tensors that no optimizer moves and no file holds.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compile,
  grad,
  noGrad,
  ones,
  setDevice,
  tensor,
  valueAndGrad,
  type Tensor,
} from '../../src/index.ts';
import { Linear, Module, parameter, parameters, Sequential, stateDict } from '../../src/nn/index.ts';
import { SGD } from '../../src/optim/index.ts';
import { refusal } from '../support/refusal.ts';

beforeAll(() => setDevice('interpreter'));
afterAll(() => setDevice(undefined));

const x = ones([1, 2]);
const inner = (): Linear => new Linear(2, 2);

class Private extends Module {
  readonly seen = inner();
  readonly #hidden = inner();
  forward(at: Tensor): Tensor {
    return this.#hidden.forward(this.seen.forward(at));
  }
}

class PrivateTensor extends Module {
  readonly #scale = parameter(ones([2]));
  forward(at: Tensor): Tensor {
    return at.mul(this.#scale);
  }
}

class Closure extends Module {
  readonly run: (at: Tensor) => Tensor;
  constructor() {
    super();
    const hidden = inner();
    this.run = (at) => hidden.forward(at);
  }
  forward(at: Tensor): Tensor {
    return this.run(at);
  }
}

const beside = new WeakMap<object, Linear>();
class Beside extends Module {
  constructor() {
    super();
    beside.set(this, inner());
  }
  forward(at: Tensor): Tensor {
    return beside.get(this)!.forward(at);
  }
}

class ByName extends Module {
  readonly layers = new Map([['first', inner()]]);
  forward(at: Tensor): Tensor {
    return this.layers.get('first')!.forward(at);
  }
}

/** A holder of a class of its own is a setting, not a tree. */
class Holder {
  readonly hidden = inner();
}
class Held extends Module {
  readonly holder = new Holder();
  forward(at: Tensor): Tensor {
    return this.holder.hidden.forward(at);
  }
}

class EachTime extends Module {
  forward(at: Tensor): Tensor {
    return inner().forward(at);
  }
}

describe('a layer that holds trainable tensors where nobody sees them', () => {
  const hiding: readonly (readonly [string, () => { forward(at: Tensor): Tensor }, RegExp])[] = [
    ['a private layer', () => new Private(), /^Private: [^]* of a layer Linear .* is no part of Private/],
    ['a private tensor', () => new PrivateTensor(), /^PrivateTensor: the trainable f32\[2\] is no part/],
    ['a closure', () => new Closure(), /^Closure: [^]* of a layer Linear/],
    ['a WeakMap', () => new Beside(), /^Beside: [^]* of a layer Linear/],
    ['a Map', () => new ByName(), /^ByName: [^]* of a layer Linear/],
    ['an object of another class', () => new Held(), /^Held: [^]* of a layer Linear/],
    [
      'a function among layers',
      () => {
        const hidden = inner();
        return new Sequential((at: Tensor) => hidden.forward(at));
      },
      /^Sequential: [^]* of a layer Linear/,
    ],
  ];

  test.each(hiding)('%s', (_, make, message) => {
    const net = make();
    const told = refusal(() => net.forward(x));
    expect(told).toMatch(message);
    expect(told).toMatch(/held\.test\.ts:\d+:\d+\n {2}try: .*field without #/);
    // And again: what was refused once is not let through later.
    expect(refusal(() => net.forward(x))).toMatch(message);
  });

  test.each(hiding)('%s, in a function that is compiled', (_, make, message) => {
    const net = make();
    const run = compile((at: Tensor) => net.forward(at));
    expect(refusal(() => run(x))).toMatch(message);
  });

  test('a layer of another', () => {
    const net = new Sequential(inner(), new Sequential(new Private()));
    expect(refusal(() => net.forward(x))).toMatch(
      /^Sequential: [^]* of a layer Linear [^]* no part of Sequential/,
    );
  });

  test('copies that derivatives and compiled functions make', () => {
    const message = /^Closure: [^]* of a layer Linear/;
    expect(refusal(() => grad((net: Closure) => net.forward(x).sum())(withTrained(new Closure())))).toMatch(
      message,
    );
    const run = compile((net: Closure, at: Tensor) => net.forward(at));
    expect(refusal(() => run(withTrained(new Closure()), x))).toMatch(message);
    const step = compile((net: Closure) => valueAndGrad((at: Closure) => at.forward(x).sum())(net));
    expect(refusal(() => step(withTrained(new Closure())))).toMatch(message);
  });

  test('a layer made at each call', () => {
    expect(refusal(() => new EachTime().forward(x))).toMatch(
      /^EachTime: [^]*try: to make the layer in the constructor/,
    );
  });
});

/** Something to train that is seen, so that a derivative can be taken. */
function withTrained(net: Closure): Closure {
  return Object.assign(net, { seen: parameter(ones([1])) });
}

describe('what is no mistake', () => {
  test('nothing is trained where no gradients are tracked', () => {
    expect(noGrad(() => new Private().forward(x)).shape).toEqual([1, 2]);
  });

  test('frozen layers', () => {
    const frozen = inner();
    for (const tensor of parameters(frozen)) tensor.requiresGrad_(false);
    expect(new Sequential((at: Tensor) => frozen.forward(at)).forward(x).shape).toEqual([1, 2]);
  });

  test('a layer and a tensor among the arguments, also within', () => {
    class Applied extends Module {
      forward(at: Tensor, how: { readonly layer: Linear; readonly bias: Map<string, Tensor> }): Tensor {
        return how.layer.forward(at).add(how.bias.get('b')!);
      }
    }
    const bias = new Map([['b', parameter(ones([2]))]]);
    expect(new Applied().forward(x, { layer: inner(), bias }).shape).toEqual([1, 2]);
    const leaf = ones([1, 2]).requiresGrad_();
    expect(inner().forward(leaf).requiresGrad).toBe(true);
  });

  test('a layer that lies beside, once it is trained', () => {
    const shared = inner();
    const head = new Sequential((at: Tensor) => shared.forward(at));
    const optimizer = new SGD([...parameters({ shared }), ones([1]).requiresGrad_()], { lr: 0.1 });
    head.forward(x).sum().backward();
    optimizer.step();
    expect(shared.weight.grad).toBeDefined();
  });

  test('the optimizer alone makes it known', () => {
    const scale = ones([2]).requiresGrad_();
    const head = new Sequential((at: Tensor) => at.mul(scale));
    expect(new SGD([scale], { lr: 0.1 }).lr).toBe(0.1);
    expect(head.forward(x).shape).toEqual([1, 2]);
  });

  test('a layer that is added later, and one that is made when it is first called', () => {
    class Late extends Module {
      made: Linear | undefined;
      forward(at: Tensor): Tensor {
        this.made ??= new Linear(at.shape[1]!, 3);
        return this.made.forward(at);
      }
    }
    const late = new Late();
    expect(late.forward(x).shape).toEqual([1, 3]);
    expect(parameters(late)).toHaveLength(2);
  });

  test('a parameter that is replaced', () => {
    const net = inner();
    net.forward(x);
    net.weight = parameter(ones([2, 2]));
    expect(net.forward(x).shape).toEqual([1, 2]);
  });

  test('a point that the layer takes a derivative at', async () => {
    class Force extends Module {
      readonly energy = new Linear(2, 1);
      forward(at: Tensor): Tensor {
        const point = at.detach().requiresGrad_();
        this.energy.forward(point).sum().backward();
        return point.grad!;
      }
    }
    const force = new Force();
    const expected = await force.energy.weight.array();
    expect(await force.forward(x).array()).toEqual(expected);
  });

  test('tied weights, buffers, and trees inside of fields', () => {
    class Tied extends Module {
      readonly parts = [{ first: inner() }];
      readonly last: Linear;
      running = ones([2]).requiresGrad_();
      constructor() {
        super();
        this.last = inner();
        this.last.weight = this.parts[0]!.first.weight;
      }
      override buffers(): readonly string[] {
        return ['running'];
      }
      forward(at: Tensor): Tensor {
        return this.last.forward(this.parts[0]!.first.forward(at)).mul(this.running);
      }
    }
    expect(new Tied().forward(x).shape).toEqual([1, 2]);
  });
});

test('after an error of its own a layer is not taken to be running', () => {
  class Fails extends Module {
    forward(): Tensor {
      throw new RangeError('its own');
    }
  }
  expect(() => new Fails().forward()).toThrow(RangeError);
  expect(ones([2]).requiresGrad_().mul(2).requiresGrad).toBe(true);
});

test('what the layer computed before stays as it was, and the way out trains everything', async () => {
  class Public extends Module {
    readonly hidden = inner();
    forward(at: Tensor): Tensor {
      return this.hidden.forward(at);
    }
  }
  const net = new Public();
  expect(Object.keys(stateDict(net))).toEqual(['hidden.weight', 'hidden.bias']);
  const before = await net.hidden.weight.array();
  const optimizer = new SGD(parameters(net), { lr: 0.5 });
  net
    .forward(tensor([[1, 1]]))
    .sum()
    .backward();
  optimizer.step();
  expect(await net.hidden.weight.array()).not.toEqual(before);
});
