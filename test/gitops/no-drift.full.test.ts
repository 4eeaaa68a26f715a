// Manifests that are applied again on a real API server, while the installed product runs, change nothing; and what remains of a
// rollback when a tool applies Git's spec again.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import { POLICY_EXAMPLES } from '../../src/cli/start/examples-folder.ts';
import { OWN_KINDS } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import type { KubernetesObject } from '../cluster/cluster.ts';
import { VALUES } from '../e2e/install-case.ts';
import { InstallLab } from '../e2e/install-lab.ts';
import { EXAMPLES_HOLD, namespacedPolicies } from '../e2e/install-policies.ts';
import { toolHealth } from './health-program.ts';

const NAMESPACE = 'examples';
const SERVER_SIDE = ['--server-side', '--field-manager=tool', '--force-conflicts'] as const;

/** Where an object is, as kubectl wants it. */
function reference({ kind, metadata }: KubernetesObject): readonly string[] {
  const plural = OWN_KINDS.find((own) => own.kind === kind)?.resource ?? kind;
  return [`${plural}/${metadata.name}`, ...(metadata.namespace === undefined ? [] : ['-n', metadata.namespace])];
}

describe('manifests in Git', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  before(async () => {
    lab = await InstallLab.start();
    await lab.install(VALUES);
    await lab.running();
    await lab.cluster.createNamespace(NAMESPACE, EXAMPLES_HOLD);
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  const get = async <T extends KubernetesObject>(object: KubernetesObject): Promise<T> =>
    JSON.parse(await lab.kubectl(['get', ...reference(object), '-o', 'json'])) as T;

  const apply = (object: KubernetesObject, ...options: readonly string[]): Promise<string> =>
    lab.kubectl(['apply', ...options, '-f', '-'], JSON.stringify(object));

  const ready = async (object: KubernetesObject): Promise<void> => {
    await lab.kubectl(['wait', ...reference(object), '--for=condition=Ready', '--timeout=50s']);
  };

  async function manifests(): Promise<readonly KubernetesObject[]> {
    const names = POLICY_EXAMPLES.filter((name) => name !== 'toolforge');
    const examples = await Promise.all(names.map((name) => lab.example(name)));
    return [
      ...(examples.flat() as KubernetesObject[]),
      load(readFileSync('examples/pinned-images/policy.yaml', 'utf8')) as KubernetesObject,
      ...namespacedPolicies(NAMESPACE).map(({ policy }) => policy),
      {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'PolicyServer',
        metadata: { name: 'second' },
        spec: { image: 'portcullis', replicas: 1 },
      },
    ];
  }

  it('change nothing when they are applied again, by client or server, and kubectl diff finds nothing', async () => {
    const objects = await manifests();
    assert.equal(new Set(objects.map(({ kind }) => kind)).size, 5, 'all kinds that people write');
    const versions = async (): Promise<readonly unknown[]> =>
      Promise.all(
        objects.map(async (object) => {
          const { resourceVersion, generation } = (await get(object)).metadata;
          return [object.kind, object.metadata.name, resourceVersion, generation];
        }),
      );
    for (const options of [[], SERVER_SIDE]) {
      await Promise.all(objects.map((object) => apply(object, ...options)));
      await Promise.all(objects.map(ready));
      const before = await versions();
      await Promise.all(objects.map((object) => apply(object, ...options)));
      const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
      assert.equal(await lab.kubectl(['diff', ...options, '-f', '-'], list), '');
      assert.deepEqual(await versions(), before);
    }
    assert.ok((await Promise.all(objects.map(get))).every(({ metadata }) => metadata['generation'] === 1));
  });

  type Found = KubernetesObject & {
    spec: Record<string, unknown>;
    status: { phase: string; observedGeneration: number };
  };

  function policy(name: string, spec: object): KubernetesObject {
    return {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name },
      spec: {
        module: 'builtin:pod-security',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        ...spec,
      },
    };
  }

  const rollout = async (...args: readonly string[]): Promise<void> => {
    const { code, stdout, stderr } = await lab.command('rollout', ...args);
    assert.deepEqual([code, stderr], [0, ''], stdout);
  };

  const selector = { matchLabels: { checked: 'yes' } };

  it('keep a pin', async () => {
    const first = policy('from-git', { settings: { enforce: 'baseline' }, objectSelector: selector });
    const second = policy('from-git', { settings: { enforce: 'restricted' } });
    await apply(first, ...SERVER_SIDE);
    await ready(first);
    await apply(second, ...SERVER_SIDE);
    await ready(second);
    const changed = await get<Found>(second);
    assert.equal(changed.spec['objectSelector'], undefined);
    assert.equal(changed.status.observedGeneration, 2, 'kubectl waits for the condition of the new generation');

    await rollout('pin', 'cap/from-git', '--revision', '1');
    await apply(second, ...SERVER_SIDE);
    const pinned = await get<Found>(second);
    assert.equal(pinned.status.phase, 'RolledBack');
    await rollout('unpin', 'cap/from-git');
  });

  it('replace the spec of a rollback without conflicts, and remove what only that has', async () => {
    for (const [name, options] of [
      ['by-client', []],
      ['by-server', ['--server-side']],
      ['by-tool', ['--server-side', '--field-manager=tool']],
    ] as const) {
      const first = policy(name, {
        mode: 'monitor',
        settings: { enforce: 'baseline', exemptions: { namespaces: ['first'] } },
        objectSelector: selector,
        timeoutSeconds: 20,
      });
      const second = policy(name, { settings: { enforce: 'restricted' } });
      await apply(first, ...options);
      await ready(first);
      await apply(second, ...options);
      await ready(second);
      const { spec: declared } = await get<Found>(second);
      await assert.rejects(apply(first, ...options), /spec\.mode: Forbidden: .*\[mode-change\]/);

      await rollout('undo', `cap/${name}`);
      const { spec: undone } = await get<Found>(first);
      assert.deepEqual(
        Object.entries(first['spec'] as object).filter(([key, value]) => !isDeepStrictEqual(undone[key], value)),
        [],
        name,
      );
      await apply(second, ...options);
      assert.deepEqual((await get<Found>(second)).spec, declared, name);
      await ready(second);
    }
  });

  it('of a policy server that cannot become ready are Failed and Degraded', async () => {
    const broken = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'broken' },
      spec: { image: 'portcullis', replicas: 1, verificationConfig: 'signatures' },
    };
    const signatures = { 'verification-config': 'apiVersion: v1' };
    const metadata = { name: 'signatures', namespace: 'portcullis' };
    await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: signatures });
    await apply(broken);
    await lab.kubectl(['wait', ...reference(broken), '--for=condition=Stalled', '--timeout=50s']);
    const { data } = load(readFileSync('deploy/argocd/health.yaml', 'utf8')) as { data: Record<string, string> };
    const script = data['resource.customizations.health.policies.kubewarden.io_PolicyServer'] ?? '';
    const [health] = toolHealth(script, [await get(broken)]);
    assert.deepEqual([health?.kstatus.status, health?.argo.status], ['Failed', 'Degraded']);
  });
});
