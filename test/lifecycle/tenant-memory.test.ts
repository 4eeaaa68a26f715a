// A tenant whose policies want more memory than those of a namespace may hold, on a policy server that also serves others.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { TestServer as ModuleServer } from '../../src/modules/testing/test-server.ts';
import { DEFAULT_SOURCES } from '../../src/modules/sources/index.ts';
import { keyOf, type KubernetesObject, policyId } from '../../src/resources/index.ts';
import { requires, review, until } from '../server/harness.ts';
import { sizedModule } from '../server/sized-module.ts';
import { kind, type Policy, PolicyLab } from './policy-lab.ts';

const MIB = 2 ** 20;
/** A namespace has a quarter of it: 16 MiB. */
const POLICY_MEMORY = 64 * MIB;
/** A module of data takes one and a half times its size: one of these fits into the part of a namespace, two do not. */
const DATA_BYTES = 6_300_000;
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

function policy(name: string, spec: object, namespace?: string): KubernetesObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: { mutating: false, rules: RULES, ...spec },
  };
}

describe('a tenant whose policies want more memory than a namespace may hold', () => {
  it('gets the figures in the status, costs others nothing, and is served when it has made room', async () => {
    await using source = await ModuleServer.start((request, response) => {
      const seed = Number(/\d/.exec(request.url ?? '')?.[0]);
      response.end(sizedModule({ seed, filledPages: 0, dataBytes: DATA_BYTES }));
    });
    await using lab = await PolicyLab.start({
      sources: { ...DEFAULT_SOURCES, tenantHosts: [source.host], tenantModules: ['*'] },
      policyMemoryBytes: POLICY_MEMORY,
    });
    for (const name of ['shop', 'bank']) {
      await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    const module = (seed: number): object => ({ module: `${source.origin}/${seed}.wasm`, settings: {} });
    const others = [policy('labels', requires('owner')), policy('neighbour', module(3), 'bank')];
    const first = policy('first', module(1), 'shop');
    const second = policy('second', module(2), 'shop');
    for (const object of [...others, first]) {
      await lab.create(object);
      await lab.reaches(object, 'Active');
    }

    let isOver = false;
    const answers = { all: 0, wrong: [] as string[] };
    const asking = (async (): Promise<void> => {
      while (!isOver) {
        for (const [object, allowed] of [
          [others[0], false],
          [others[1], true],
        ] as const) {
          const answer = await lab.server.review(policyId(object as KubernetesObject), review());
          answers.all += 1;
          if (answer.allowed !== allowed) {
            answers.wrong.push(JSON.stringify(answer));
          }
        }
        await turn();
      }
    })();

    await lab.create(second);
    const type = kind<Policy>(second.apiVersion, second.kind);
    const refused = await lab.sees(type, keyOf(second), (found) => found?.status?.reason === 'MemoryExceeded');
    assert.match(
      refused?.status?.message ?? '',
      /the policies of namespace shop would hold \d+\.\d MiB of memory instead of 9\.\d MiB: expected at most 16\.0 MiB of the 64\.0 MiB for policies/,
    );
    assert.equal(refused?.status?.phase, 'Error');
    await lab.reaches(first, 'Active');

    await lab.cluster.admin.delete(type, keyOf(first));
    await lab.reaches(second, 'Active');
    isOver = true;
    await asking;
    assert.deepEqual(answers.wrong, []);
    assert.ok(answers.all > 10, String(answers.all));
    await until(() => lab.server.server.policy(policyId(second))?.phase === 'Active');
  });
});
