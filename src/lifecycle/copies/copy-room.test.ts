import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hasRoom } from './copy-room.ts';
import { CLUSTER } from './wanted-copies.ts';

const MIB = 1024 * 1024;
const MAX = 64 * MIB;

const used = (bytes: Readonly<Record<string, number>>): ReadonlyMap<string, number> => new Map(Object.entries(bytes));

describe('the space for copies', () => {
  it('of one namespace is a quarter', () => {
    assert.equal(hasRoom(16 * MIB, 'a', used({}), MAX), true);
    assert.equal(hasRoom(17 * MIB, 'a', used({}), MAX), false);
    assert.equal(hasRoom(1, 'a', used({ a: 16 * MIB }), MAX), false);
    assert.equal(hasRoom(16 * MIB, 'b', used({ a: 16 * MIB }), MAX), true);
  });

  it('of all namespaces is a half, so that the cluster always has the other one', () => {
    const full = used({ a: 16 * MIB, b: 16 * MIB });
    assert.equal(hasRoom(1, 'c', full, MAX), false);
    assert.equal(hasRoom(32 * MIB, CLUSTER, full, MAX), true);
    assert.equal(hasRoom(33 * MIB, CLUSTER, full, MAX), false);
    assert.equal(hasRoom(64 * MIB, CLUSTER, used({}), MAX), true);
  });

  it('is taken by small modules, too, so that their number is bounded', () => {
    assert.equal(hasRoom(1, CLUSTER, used({ [CLUSTER]: MAX - 64 * 1024 }), MAX), true);
    assert.equal(hasRoom(1, CLUSTER, used({ [CLUSTER]: MAX - 64 * 1024 + 1 }), MAX), false);
  });
});
