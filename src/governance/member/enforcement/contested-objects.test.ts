import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ContestedObjects } from './contested-objects.ts';

const MAPS = { group: '', version: 'v1', resource: 'configmaps', kind: 'ConfigMap', namespaced: true };
const KEY = { namespace: 'default', name: 'settings' };

/** Writes of these policies, a second apart; returns the objects and the time of the last write. */
function writes(...policies: readonly string[]): { readonly objects: ContestedObjects; readonly last: number } {
  const objects = new ContestedObjects();
  for (const [index, policy] of policies.entries()) {
    objects.record(MAPS, KEY, policy, index * 1_000);
  }
  return { objects, last: (policies.length - 1) * 1_000 };
}

const FIGHT = ['left', 'right', 'left', 'right', 'left'];

describe('two policies that change an object in turn', () => {
  it('fight after four turns: then the next write has to wait, for both', () => {
    const few = writes(...FIGHT.slice(1));
    assert.equal(few.objects.contest(MAPS, KEY, 'right', few.last), undefined);
    const { objects, last } = writes(...FIGHT);
    assert.deepEqual(objects.contest(MAPS, KEY, 'right', last), { with: 'left', until: last + 5_000 });
    assert.deepEqual(objects.contest(MAPS, KEY, 'left', last), { with: 'right', until: last + 5_000 });
    assert.equal(objects.contest(MAPS, KEY, 'right', last + 5_000), undefined);
  });

  it('wait twice as long with each further turn, up to five minutes', () => {
    const { objects, last } = writes(...FIGHT, 'right');
    assert.deepEqual(objects.contest(MAPS, KEY, 'left', last), { with: 'right', until: last + 10_000 });
    let now = last;
    for (let turn = 0; turn < 20; turn += 1) {
      now += 300_000;
      objects.record(MAPS, KEY, turn % 2 === 0 ? 'left' : 'right', now);
    }
    assert.equal(objects.contest(MAPS, KEY, 'left', now)?.until, now + 300_000);
  });

  it('are reported until the other one had its turn', () => {
    const { objects, last } = writes(...FIGHT);
    assert.deepEqual(objects.fight(MAPS, KEY, 'left', last), { with: 'right', until: last + 10_000 });
    assert.deepEqual(objects.fight(MAPS, KEY, 'right', last), { with: 'left', until: last + 10_000 });
    assert.equal(objects.fight(MAPS, KEY, 'bystander', last), undefined);
    assert.equal(objects.fight(MAPS, KEY, 'left', last + 10_000), undefined);
  });

  it('are forgotten when nothing can continue their contest', () => {
    const objects = new ContestedObjects();
    for (let index = 0; index < 100; index += 1) {
      objects.record(MAPS, { ...KEY, namespace: `tenant-${index}` }, 'left', 0);
    }
    objects.record(MAPS, KEY, 'left', 59_000);
    assert.equal(objects.size, 101);
    objects.record(MAPS, KEY, 'left', 60_000);
    assert.equal(objects.size, 1);
  });

  it('do not fight when they write rarely', () => {
    const objects = new ContestedObjects();
    for (const [index, policy] of [...FIGHT, ...FIGHT].entries()) {
      objects.record(MAPS, KEY, policy, index * 61_000);
    }
    assert.equal(objects.contest(MAPS, KEY, 'left', 9 * 61_000), undefined);
  });
});

describe('one policy', () => {
  it('fights with nobody, however often it writes', () => {
    const { objects, last } = writes(...Array.from({ length: 50 }, () => 'left'));
    assert.equal(objects.contest(MAPS, KEY, 'left', last), undefined);
    assert.equal(objects.fight(MAPS, KEY, 'left', last), undefined);
  });

  it('does not wait for a fight over another object', () => {
    const { objects, last } = writes(...FIGHT);
    assert.equal(objects.contest(MAPS, { ...KEY, name: 'other' }, 'left', last), undefined);
  });
});

describe('the memory of writes', () => {
  it('is bounded: the oldest is forgotten', () => {
    const { objects, last } = writes(...FIGHT);
    for (let index = 0; index < 50_000; index += 1) {
      objects.record(MAPS, { ...KEY, name: `n${index}` }, 'left', last);
    }
    assert.equal(objects.contest(MAPS, KEY, 'right', last), undefined);
  });
});
