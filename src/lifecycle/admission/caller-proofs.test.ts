import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Cluster } from '../../cluster/index.ts';
import type { KubernetesObject } from '../../resources/index.ts';
import { CallerProofs } from './caller-proofs.ts';
import type { OwnKindsReview } from './own-kinds-review.ts';

const ADDRESS = '10.244.0.1';
const MINUTE_MS = 60_000;
const signal = new AbortController().signal;

/** Proofs whose API server does this with the object of each call, with the number of calls before. */
function proofs(
  call: (name: string, before: number, all: CallerProofs) => void,
  now: () => number = () => 0,
): CallerProofs {
  let calls = 0;
  const create = async (_: unknown, object: KubernetesObject): Promise<KubernetesObject> => {
    calls += 1;
    call(object.metadata.name ?? '', calls - 1, all);
    return object;
  };
  const all = new CallerProofs({
    cluster: { create } as unknown as Pick<Cluster, 'create'>,
    namespace: 'portcullis',
    now,
  });
  return all;
}

const review = (name: string): OwnKindsReview => ({ name }) as unknown as OwnKindsReview;

describe('the proof of an address', () => {
  it('is asked for again when a call fails, or reaches another process', async () => {
    const all = proofs((name, before, known) => {
      if (before === 0) {
        throw new Error('the server could not find the requested resource');
      }
      if (before === 2) {
        known.receive(ADDRESS, review(name));
      }
    });
    await all.ask(signal);
    assert.ok(all.has(ADDRESS));
  });

  it('holds for ten minutes, and takes each secret once, while it is asked for', async () => {
    let now = 0;
    const names: string[] = [];
    const all = proofs(
      (name, _, known) => {
        names.push(name);
        known.receive(ADDRESS, review(name));
        known.receive('10.0.0.66', review(name));
      },
      () => now,
    );
    await all.ask(signal);
    now = 10 * MINUTE_MS - 1;
    assert.deepEqual([all.has(ADDRESS), all.has('10.0.0.66')], [true, false]);
    now += 1;
    assert.ok(!all.has(ADDRESS));
    all.receive(ADDRESS, review(names[0] ?? ''));
    assert.ok(!all.has(ADDRESS));
  });
});
