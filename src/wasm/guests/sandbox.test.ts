import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileModule } from '../instrumentation/compile.ts';
import { InstanceMemory } from './instance-memory.ts';
import { INIT_FUEL, PAGE_BYTES } from '../instrumentation/metering.ts';
import { MAX_RESTORE_BYTES } from '../instrumentation/runtime-functions.ts';
import { CALLS_PER_INSTANCE, Sandbox } from './sandbox.ts';
import type { SandboxInstance } from './sandbox.ts';
import { sandboxOf, TEST_MEMORY_BYTES } from '../testing/guests.ts';
import { wat } from '../testing/wat.ts';

const FUEL = 10_000_000;
const MIB = 2 ** 20;

const STATEFUL = `(module
  (memory (export "memory") 1)
  (global $count (mut i64) (i64.const 7))
  (global $vector (mut v128) (v128.const i32x4 1 2 3 4))
  (global $ref (mut externref) (ref.null extern))
  (data (i32.const 100) "hello")
  (func (export "touch") (param $at i32) (param $value i32)
    (i32.store (local.get $at) (local.get $value))
    (global.set $count (i64.add (global.get $count) (i64.const 1)))
    (global.set $vector (v128.const i32x4 9 9 9 9)))
  (func (export "peek") (param i32) (result i32) (i32.load (local.get 0)))
  (func (export "count") (result i64) (global.get $count))
  (func (export "lane") (result i32) (i32x4.extract_lane 0 (global.get $vector)))
  (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
  (func (export "size") (result i32) (memory.size))
  (func (export "fill") (param i32 i32 i32) (memory.fill (local.get 0) (local.get 1) (local.get 2)))
  (func (export "copy") (param i32 i32 i32) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "spin") (loop $again (br $again)))
  (func $deeper (export "deeper") (param i32) (result i32)
    (i32.add (i32.const 1) (call $deeper (local.get 0))))
  (func (export "trap") unreachable))`;

/** The guest's view of its own state. */
function observe(instance: SandboxInstance): unknown {
  return {
    memory: Buffer.from(instance.view(0, instance.memoryBytes)).toString('latin1'),
    bytes: instance.memoryBytes,
    size: instance.func('size')(),
    count: instance.func('count')(),
    lane: instance.func('lane')(),
  };
}

for (const isolation of ['restore', 'fresh'] as const) {
  describe(`a call in ${isolation} isolation`, () => {
    const leavesNothing = (body: (instance: SandboxInstance) => void): void => {
      const sandbox = sandboxOf(STATEFUL, isolation);
      const before = sandbox.call(FUEL, observe);
      sandbox.call(FUEL, body);
      assert.deepEqual(sandbox.call(FUEL, observe), before);
    };

    it('undoes every store, wherever it starts and ends', () => {
      leavesNothing((instance) => {
        for (const at of [0, 100, 4093, 4094, 4096, 8191, 65_532]) {
          instance.func('touch')(at, -1);
        }
      });
    });

    it('undoes bulk operations', () => {
      leavesNothing((instance) => {
        instance.func('fill')(5000, 1, 20_000);
        instance.func('fill')(4095, 2, 4096);
        instance.func('fill')(65_535, 3, 1);
        instance.func('fill')(65_536, 3, 0);
        instance.func('copy')(40_000, 100, 9000);
      });
    });

    it('undoes growth and writes to the new pages', () => {
      leavesNothing((instance) => {
        assert.equal(instance.func('grow')(20), 1);
        instance.func('fill')(PAGE_BYTES, 7, 20 * PAGE_BYTES);
        assert.equal(instance.func('size')(), 21);
      });
      const sandbox = sandboxOf(STATEFUL, isolation);
      sandbox.call(FUEL, (instance) => {
        instance.func('grow')(1);
        instance.func('touch')(PAGE_BYTES + 8, 1);
      });
      sandbox.call(FUEL, (instance) => {
        instance.func('grow')(1);
        assert.equal(instance.func('peek')(PAGE_BYTES + 8), 0);
      });
    });

    it('undoes writes of the host', () => {
      leavesNothing((instance) => {
        instance.write(4090, new Uint8Array(9000).fill(1));
        instance.writeString(20_000, 'text', 4);
        instance.setUint8(30_000, 1);
        instance.setUint32(32_766, 0xffff_ffff);
        instance.setUint64(36_862, 0xffff_ffff_ffff_ffffn);
        instance.write(PAGE_BYTES, new Uint8Array(0));
      });
    });

    it('undoes everything after a trap or when the fuel is used up', () => {
      const sandbox = sandboxOf(STATEFUL, isolation);
      const before = sandbox.call(FUEL, observe);
      for (const [name, code] of [
        ['trap', 'trap'],
        ['spin', 'out-of-fuel'],
        ['deeper', 'trap'],
      ] as const) {
        assert.throws(
          () =>
            sandbox.call(FUEL, (instance) => {
              instance.func('touch')(100, 1);
              instance.func(name)(0);
            }),
          { name: 'WasmError', code },
        );
        assert.deepEqual(sandbox.call(FUEL, observe), before);
      }
    });

    it('grows up to the limit and not further', () => {
      const pages = TEST_MEMORY_BYTES / PAGE_BYTES;
      sandboxOf(STATEFUL, isolation).call(FUEL, (instance) => {
        assert.equal(instance.func('grow')(pages), -1);
        assert.equal(instance.func('grow')(-1), -1);
        assert.equal(instance.func('grow')(pages - 1), 1);
        assert.equal(instance.func('grow')(1), -1);
        assert.equal(instance.func('grow')(0), pages);
        instance.func('touch')(TEST_MEMORY_BYTES - 4, 1);
        assert.throws(() => instance.func('touch')(TEST_MEMORY_BYTES - 3, 1), /out of bounds/);
      });
    });

    it('uses the same fuel every time', () => {
      const sandbox = sandboxOf(STATEFUL, isolation);
      const body = (instance: SandboxInstance): void => {
        instance.func('touch')(100, 1);
        instance.func('fill')(0, 1, 10_000);
      };
      sandbox.call(FUEL, body);
      const used = sandbox.fuelUsed;
      assert.ok(used > 0);
      sandbox.call(FUEL * 2, body);
      assert.equal(sandbox.fuelUsed, used);
    });

    it('charges bulk memory operations by length', () => {
      const sandbox = sandboxOf(STATEFUL, isolation);
      const fuelFor = (bytes: number): number => {
        sandbox.call(FUEL, (instance) => {
          instance.func('grow')(200);
          instance.func('fill')(0, 1, bytes);
        });
        return sandbox.fuelUsed;
      };
      assert.equal(fuelFor(8_000_000) - fuelFor(4_000_000), 4_000_000 / 16);
    });
  });
}

describe('a sandbox', () => {
  it('restores one instance instead of creating new ones', () => {
    const random = sandboxWithSeed();
    const seeds = [1, 2, 3].map(() => random.call(FUEL, (instance) => instance.func('seed')()));
    assert.equal(new Set(seeds).size, 1);
  });

  it('initializes a new instance with new random numbers after a number of calls', () => {
    const random = sandboxWithSeed();
    const seed = random.call(FUEL, (instance) => instance.func('seed')());
    for (let call = 1; call < CALLS_PER_INSTANCE; call++) {
      random.call(FUEL, () => undefined);
    }
    assert.notEqual(
      random.call(FUEL, (instance) => instance.func('seed')()),
      seed,
    );
  });

  it('shares no random numbers with another one of the same module', () => {
    const seeds = [sandboxWithSeed(), sandboxWithSeed()].map((one) =>
      one.call(FUEL, (instance) => instance.func('seed')()),
    );
    assert.notEqual(seeds[0], seeds[1]);
  });

  it('creates a new instance when a call wrote more than the limit of restore', () => {
    let made = 0;
    const compiled = compileModule(wat(STATEFUL), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
    const sandbox = new Sandbox(compiled, {
      imports: () => {
        made++;
        return {};
      },
    });
    sandbox.call(FUEL, (instance) => {
      instance.func('grow')(200);
      instance.func('fill')(0, 1, MAX_RESTORE_BYTES + 1);
    });
    sandbox.call(FUEL, (instance) => assert.equal(instance.func('peek')(0), 0));
    assert.equal(made, 2);
  });

  it('runs the start function, and stops an endless one', () => {
    const started = `(module (memory 1) (start $go) (func $go (i32.store (i32.const 0) (i32.const 5)))
      (func (export "peek") (result i32) (i32.load (i32.const 0))))`;
    assert.equal(
      sandboxOf(started).call(FUEL, (instance) => instance.func('peek')()),
      5,
    );
    const endless = '(module (memory 1) (start $go) (func $go (loop $l (br $l))))';
    assert.throws(() => sandboxOf(endless).start(), { code: 'out-of-fuel', message: new RegExp(String(INIT_FUEL)) });
  });

  it('runs no code of the module before its first call, whose fuel limits the start, too', () => {
    const sandbox = sandboxOf('(module (memory 1) (start $go) (func $go (loop $l (br $l))))');
    assert.throws(() => sandbox.call(FUEL, () => assert.fail()), {
      code: 'out-of-fuel',
      message: new RegExp(`at most ${FUEL} `),
    });
  });

  it('starts at most once before its first call', () => {
    let made = 0;
    const compiled = compileModule(wat(STATEFUL), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
    const sandbox = new Sandbox(compiled, {
      imports: () => {
        made++;
        return {};
      },
    });
    assert.equal(made, 0);
    sandbox.start();
    sandbox.start();
    sandbox.call(FUEL, () => undefined);
    assert.equal(made, 1);
  });

  it('holds what was written, and a copy of what its start left other than zeros', () => {
    const held = (source: string, body: (instance: SandboxInstance) => void = () => undefined): number => {
      const memory = new InstanceMemory({ bytes: Infinity, bytesOf: () => Infinity });
      const compiled = compileModule(wat(source), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
      const sandbox = new Sandbox(compiled, { imports: () => ({}) }, memory.share('one', ''));
      sandbox.start();
      sandbox.call(FUEL, body);
      return memory.bytes;
    };
    const filled = (value: number): string =>
      `(module (memory 1024) (start $go) (func $go
        (memory.fill (i32.const 0) (i32.const ${value}) (i32.const ${16 * MIB}))))`;
    const untouched = held('(module (memory 1024))');
    assert.ok(untouched < 0.1 * MIB, `a memory of 64 MiB holds ${untouched} bytes`);
    const marked = 4096;
    assert.equal(held(filled(1)) - untouched, 32 * MIB + marked);
    assert.ok(held(filled(0)) - untouched <= 16 * MIB + marked);
    const once = held(STATEFUL, (instance) => instance.func('touch')(40_960, 1));
    const twice = held(STATEFUL, (instance) => {
      instance.func('touch')(40_960, 1);
      instance.func('touch')(40_970, 1);
    });
    assert.equal(once, twice);
    assert.ok(once > held(STATEFUL));
  });

  it('fails to start when it would hold more than it may, and copies no more than that', () => {
    const memory = new InstanceMemory({ bytes: 8 * MIB, bytesOf: () => 8 * MIB });
    const source = `(module (memory 512) (start $go) (func $go
      (memory.fill (i32.const 0) (i32.const 1) (i32.const ${32 * MIB}))))`;
    const compiled = compileModule(wat(source), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
    const sandbox = new Sandbox(compiled, { imports: () => ({}) }, memory.share('one', ''));
    assert.throws(() => sandbox.start(), { code: 'memory-exceeded', message: /holds 64\.1 MiB .*at most 8\.0 MiB/ });
    assert.equal(memory.bytes, 0);
  });

  it('is dropped when calls have written here and there more than it may hold', () => {
    const memory = new InstanceMemory({ bytes: 8 * MIB, bytesOf: () => 8 * MIB });
    let made = 0;
    const compiled = compileModule(wat(STATEFUL), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
    const host = { imports: () => ((made += 1), {}) };
    const sandbox = new Sandbox(compiled, host, memory.share('one', ''));
    for (let call = 0; call < 8; call++) {
      // Beyond the size of its memory, where a store does not trap.
      sandbox.call(FUEL, (instance) => instance.func('fill')(call * 3 * MIB, 1, 3 * MIB));
      assert.ok(memory.bytes <= 8 * MIB);
    }
    assert.ok(made > 1 && made < 8, `${made} instances`);
  });

  it('names all missing imports when it starts', () => {
    const text = `(module (import "env" "first" (func)) (import "toString" "call" (func)) (import "host" "known" (func)) (memory 1))`;
    assert.throws(() => sandboxOf(text, 'restore', { host: { known: () => undefined } }).start(), {
      code: 'import-missing',
      message: /2 functions .*env\.first, toString\.call/,
    });
  });

  it('gives each guest that imports a memory a memory of its own', () => {
    const text = `(module (import "env" "memory" (memory 2)) (data (i32.const 8) "\\2a")
      (func (export "peek") (result i32) (i32.load (i32.const 8))))`;
    for (const isolation of ['restore', 'fresh'] as const) {
      sandboxOf(text, isolation).call(FUEL, (instance) => {
        assert.equal(instance.func('peek')(), 42);
        assert.equal(instance.memoryBytes, 2 * PAGE_BYTES);
      });
    }
  });

  it('enlarges an imported memory for data segments that end beyond it, as OPA needs', () => {
    const segment = (memory: string): string =>
      `(module ${memory} (data (i32.const 65534) "abcd") (func (export "peek") (result i32) (i32.load8_u (i32.const 65537))))`;
    for (const isolation of ['restore', 'fresh'] as const) {
      sandboxOf(segment('(import "env" "memory" (memory 1))'), isolation).call(FUEL, (instance) => {
        assert.equal(instance.func('peek')(), 'd'.charCodeAt(0));
        assert.equal(instance.memoryBytes, 2 * PAGE_BYTES);
      });
      assert.throws(() => sandboxOf(segment('(memory 1)'), isolation), { code: 'module-invalid' });
      assert.throws(() => sandboxOf(segment('(import "env" "memory" (memory 1 1))'), isolation), {
        code: 'memory-limit',
      });
    }
  });

  it('refuses ranges outside of the guest’s memory', () => {
    sandboxOf(STATEFUL).call(FUEL, (instance) => {
      for (const [ptr, length] of [
        [PAGE_BYTES, 1],
        [PAGE_BYTES - 3, 4],
        [-1, 1],
        [0, -1],
        [0, Number.NaN],
        [2 ** 32 - 1, 2],
      ] as const) {
        assert.throws(() => instance.view(ptr, length), { code: 'bad-pointer' });
      }
      assert.throws(() => instance.setUint32(PAGE_BYTES - 3, 1), { code: 'bad-pointer' });
      assert.throws(() => instance.writeString(0, 'too long', 3), { code: 'bad-pointer' });
      assert.equal(instance.view(PAGE_BYTES, 0).length, 0);
    });
  });

  it('reports values that do not match the declared types as a trap', () => {
    const text = '(module (import "env" "f" (func $f (result i64))) (memory 1) (func (export "go") (drop (call $f))))';
    const sandbox = sandboxOf(text, 'restore', { env: { f: () => 1 } });
    assert.throws(() => sandbox.call(FUEL, (instance) => instance.func('go')()), { code: 'trap' });
  });

  it('rethrows exceptions of host functions', () => {
    const text = '(module (import "env" "f" (func $f)) (memory 1) (func (export "go") (call $f)))';
    const failure = new Error('mine');
    const fail = (): void => {
      throw failure;
    };
    const sandbox = sandboxOf(text, 'restore', { env: { f: fail } });
    assert.throws(
      () => sandbox.call(FUEL, (instance) => instance.func('go')()),
      (error) => error === failure,
    );
  });

  it('charges fuel for the work of the host', () => {
    const sandbox = sandboxOf(STATEFUL);
    sandbox.call(1000, (instance) => instance.chargeFuel(1000));
    assert.equal(sandbox.fuelUsed, 1000);
    assert.throws(() => sandbox.call(1000, (instance) => instance.chargeFuel(1001)), { code: 'out-of-fuel' });
  });
});

describe('modules that cannot be restored', () => {
  const cases: Record<string, string> = {
    'table-mutation': `(module (memory 1) (table $t 2 funcref) (func $f)
      (elem declare func $f)
      (func (export "set") (table.set $t (i32.const 0) (ref.func $f)))
      (func (export "get") (result i32) (ref.is_null (table.get $t (i32.const 0)))))`,
    'segment-drop': `(module (memory 1) (data $d "x") (func (export "set") (data.drop $d))
      (func (export "get") (result i32) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)) (i32.const 1)))`,
  };
  for (const [obstacle, text] of Object.entries(cases)) {
    it(`get a new instance for every call: ${obstacle}`, () => {
      const compiled = compileModule(wat(text), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
      assert.deepEqual([compiled.shape.isolation, compiled.shape.obstacle], ['fresh', obstacle]);
      const sandbox = sandboxOf(text);
      sandbox.call(FUEL, (instance) => instance.func('set')());
      assert.equal(
        sandbox.call(FUEL, (instance) => instance.func('get')()),
        1,
      );
    });
  }
});

/** A guest whose init keeps a random number. */
function sandboxWithSeed(): Sandbox {
  const text = `(module (import "env" "random" (func $random (result i32))) (memory 1)
    (func (export "init") (i32.store (i32.const 0) (call $random)))
    (func (export "seed") (result i32) (i32.load (i32.const 0))))`;
  const compiled = compileModule(wat(text), { memoryLimitBytes: TEST_MEMORY_BYTES, isolation: 'restore' });
  return new Sandbox(compiled, {
    imports: () => ({ env: { random: () => Math.floor(Math.random() * 2 ** 31) } }),
    init: (instance) => void instance.func('init')(),
  });
}
