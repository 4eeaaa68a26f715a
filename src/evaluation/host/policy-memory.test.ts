import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CompiledPolicyModule } from '../compiled-module.ts';
import type { LoadOutcome } from '../loading/load-request.ts';
import { memoryBudget } from '../memory-budget.ts';
import { MAX_LISTED_OWNERS, PolicyMemory } from './policy-memory.ts';

const MIB = 2 ** 20;

/** A module whose code takes 6 times this size; only what the memory reads. */
function moduleOf(digest: string, codeMib: number, instanceMib: number): CompiledPolicyModule {
  const codeBytes = codeMib * MIB;
  const compiled = { shape: { rewrittenBytes: (codeBytes * 4) / 3, codeBytes, functions: 0 } };
  return { digest, mode: 'opa', compiled, instanceBytes: instanceMib * MIB } as unknown as CompiledPolicyModule;
}

/** A budget of 384 MiB for three threads; policies are named `NAMESPACE/NAME`. */
function setUp(): { memory: PolicyMemory; load: (id: string, ...modules: CompiledPolicyModule[]) => LoadOutcome } {
  const memory = new PolicyMemory(memoryBudget(1024 * MIB, 2), (id) => id.slice(0, id.indexOf('/')));
  const load = (id: string, ...modules: CompiledPolicyModule[]): LoadOutcome =>
    memory.admitted(id, {
      ok: true,
      digests: Object.fromEntries(modules.map(({ digest }) => [digest, digest])),
      modules,
    });
  return { memory, load };
}

describe('the memory of policies', () => {
  it('is the code of all modules, and an instance of the largest in each thread', () => {
    const { memory, load } = setUp();
    assert.ok(load('/a', moduleOf('one', 1, 5)).ok);
    assert.ok(load('/b', moduleOf('two', 2, 3)).ok);
    assert.equal(memory.bytes, (6 + 12 + 3 * 5) * MIB);
  });

  it('refuses what exceeds the part of a namespace, with the figures, and lets others load', () => {
    const { memory, load } = setUp();
    assert.ok(load('shop/a', moduleOf('one', 5, 10)).ok);
    const refused = load('shop/b', moduleOf('two', 10, 1));
    assert.ok(!refused.ok && refused.reason === 'MemoryExceeded' && refused.transient);
    assert.match(
      refused.message,
      /the policies of namespace shop would hold 120\.0 MiB of memory instead of 60\.0 MiB: expected at most 96\.0 MiB of the 384\.0 MiB .* 60\.0 MiB for its code, and 1\.0 MiB for an instance in each of 3 threads.* give the policy server 1280 MiB of memory instead of 1024 MiB/,
    );
    assert.ok(load('bank/b', moduleOf('two', 10, 1)).ok);
    assert.ok(load('/b', moduleOf('three', 20, 1)).ok);
    assert.deepEqual(memory.owners(), [
      { owner: 'cluster', bytes: 123 * MIB },
      { owner: 'bank', bytes: 63 * MIB },
      { owner: 'shop', bytes: 60 * MIB },
    ]);
  });

  it('leaves cluster-wide policies the half that all namespaces together may not have', () => {
    const { load } = setUp();
    for (const namespace of ['a', 'b', 'c']) {
      assert.ok(load(`${namespace}/x`, moduleOf(namespace, 9, 2)).ok);
    }
    const refused = load('d/x', moduleOf('d', 9, 2));
    assert.ok(!refused.ok);
    assert.match(refused.message, /the policies of all namespaces would hold .* at most 192\.0 MiB/);
    assert.ok(load('/x', moduleOf('e', 30, 2)).ok);
  });

  it('counts a module once for an owner, and no longer when nothing uses it', () => {
    const { memory, load } = setUp();
    const module = moduleOf('one', 10, 5);
    assert.ok(load('shop/a', module).ok);
    assert.ok(load('shop/b', module).ok);
    assert.equal(memory.bytes, 75 * MIB);
    memory.set('shop/a', ['one']);
    memory.set('shop/a', []);
    assert.equal(memory.bytes, 75 * MIB);
    memory.set('shop/b', []);
    assert.equal(memory.bytes, 0);
    assert.deepEqual(memory.owners(), []);
  });

  it('holds the module of a new version beside that of the old one until the old one is gone', () => {
    const { memory, load } = setUp();
    load('/a', moduleOf('one', 1, 0));
    memory.set('/a', ['one']);
    load('/a', moduleOf('two', 2, 0));
    assert.equal(memory.bytes, 18 * MIB);
    memory.set('/a', ['two']);
    assert.equal(memory.bytes, 12 * MIB);
  });

  it('lets a version of a cluster-wide policy replace a large one, by a loan for that time', () => {
    const { memory, load } = setUp();
    assert.ok(load('/a', moduleOf('one', 40, 2)).ok);
    memory.set('/a', ['one']);
    assert.ok(load('/b', moduleOf('small', 1, 2)).ok);
    assert.ok(!load('/other', moduleOf('two', 40, 2)).ok, 'as an additional policy it is too much');
    assert.ok(load('/a', moduleOf('two', 40, 2)).ok);
    assert.ok(memory.bytes > 384 * MIB);
    const third = load('/a', moduleOf('three', 40, 2));
    assert.ok(!third.ok);
    assert.match(
      third.message,
      /would hold 732\.0 MiB of memory until the new version has replaced the old one: expected at most 512\.0 MiB, which is 384\.0 MiB of the 384\.0 MiB for policies, and 128\.0 MiB for that time\. .* give the policy server 1464 MiB/,
    );
    memory.set('/a', ['two']);
    assert.ok(memory.bytes < 384 * MIB);
    assert.ok(load('/a', moduleOf('one', 40, 2)).ok, 'the way back');
    assert.ok(!load('/a', moduleOf('huge', 70, 2)).ok, 'not more than could stay');
  });

  it('warns of a module that no version of its size could replace, and says how much memory that takes', () => {
    const { memory, load } = setUp();
    const large = moduleOf('one', 45, 2);
    assert.ok(load('/a', large).ok);
    assert.match(
      memory.warning('/a', [large]) ?? '',
      /needs 270\.0 MiB of memory for its code\. A new version of that size could not replace it, .* give the policy server 1092 MiB of memory instead of 1024 MiB/,
    );
    assert.equal(memory.warning('/b', [moduleOf('two', 1, 2)]), undefined);
    assert.equal(memory.warning('/b', [{ digest: 'builtin', mode: 'builtin', name: 'cel' }]), undefined);
  });

  it('lends nothing to a namespace', () => {
    const { memory, load } = setUp();
    assert.ok(load('shop/a', moduleOf('one', 10, 1)).ok);
    memory.set('shop/a', ['one']);
    const refused = load('shop/a', moduleOf('two', 10, 1));
    assert.ok(!refused.ok && refused.reason === 'MemoryExceeded');
    assert.match(refused.message, /until the new version has replaced the old one: expected at most 96\.0 MiB/);
  });

  it('never refuses builtin modules, and leaves failures as they are', () => {
    const { memory, load } = setUp();
    assert.ok(load('/a', moduleOf('one', 64, 0)).ok);
    assert.ok(load('/b', { digest: 'builtin', mode: 'builtin', name: 'cel' }).ok);
    const failed: LoadOutcome = { ok: false, reason: 'FetchFailed', message: 'down', transient: true };
    assert.equal(memory.admitted('/c', failed), failed);
  });

  it('lists the largest owners, and the sum of all others', () => {
    const { memory, load } = setUp();
    for (let index = 0; index < MAX_LISTED_OWNERS + 2; index++) {
      load(`n${index}/a`, moduleOf('one', 0.125, 0));
    }
    assert.equal(memory.owners().length, MAX_LISTED_OWNERS + 1);
    assert.equal(memory.owners().at(-1)?.owner, '_other_');
    assert.equal(memory.bytes, 0.75 * MIB);
  });
});
