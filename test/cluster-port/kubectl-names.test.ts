// Names of Kubernetes' kinds mean the same to kubectl after our kinds were installed, also over definitions of earlier versions.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { installObjects } from '../../src/installation/install-objects.ts';
import { defaultValues } from '../../src/installation/read-values.ts';
import { allBuiltinKinds, customResourceDefinition, NETWORK_POLICY_STATUSES } from '../../src/resources/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { embeddedTarget, type KubectlTarget, realTarget } from './kubectl-target.ts';

/** The group and names of a kind, in the table of `kubectl api-resources`. */
const COLUMNS = /^(?<resource>\S+) +(?:\S+ +)?(?:\S+\/)?v\d/;

const NETWORK_POLICY = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name: 'web', namespace: 'default' },
  spec: { podSelector: {}, policyTypes: ['Ingress'] },
};

/** With the category that former versions installed. */
function formerDefinition(): object {
  const definition = structuredClone(customResourceDefinition(NETWORK_POLICY_STATUSES)) as unknown as {
    spec: { names: { categories: string[] } };
  };
  definition.spec.names.categories.push('netpol');
  return definition;
}

/** Another product's kind with a short name that Kubewarden has, too. */
const AUTHORIZATION_POLICIES = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'authorizationpolicies.security.istio.io' },
  spec: {
    group: 'security.istio.io',
    scope: 'Namespaced',
    names: {
      plural: 'authorizationpolicies',
      singular: 'authorizationpolicy',
      kind: 'AuthorizationPolicy',
      shortNames: ['ap'],
    },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

/** Whoever reads, annotates or deletes `netpol` has NetworkPolicies in mind, although each has a status of ours with its name. */
async function namesPoliciesOnly(
  kubectl: (args: readonly string[]) => Promise<string>,
  apply: (...items: readonly object[]) => Promise<string>,
): Promise<void> {
  const metadata = { name: 'web', namespace: 'default' };
  await apply({ apiVersion: 'portcullis.dev/v1', kind: 'NetworkPolicyStatus', metadata, spec: {} });
  const described = await kubectl(['describe', 'netpol']);
  assert.match(described, /^Name: +web\n/);
  assert.match(described, /^Spec:\n +PodSelector: /m);
  assert.equal(described.match(/^Name:/gm)?.length, 1);
  const annotated = await kubectl(['annotate', 'netpol', '--all', 'a=b', '--dry-run=server']);
  assert.equal(annotated, 'networkpolicy.networking.k8s.io/web annotated (server dry run)\n');
  const deleted = await kubectl(['delete', 'netpol', '--all', '--dry-run=server']);
  assert.match(deleted, /^networkpolicy\.networking\.k8s\.io "web" deleted.*\(server dry run\)\n$/);
}

for (const [where, start] of [
  ['a kube-apiserver', realTarget],
  ['the gateway', embeddedTarget],
] as const) {
  describe(`kubectl on ${where}`, { skip: skipWithoutCluster() }, () => {
    let target: KubectlTarget;
    const kubectl = async (args: readonly string[], stdin = ''): Promise<string> => {
      const { code, stdout, stderr } = await target.run({ args, stdin });
      assert.equal(code, 0, `kubectl ${args.join(' ')}: ${stderr}`);
      return stdout + stderr;
    };
    const apply = (...items: readonly object[]): Promise<string> =>
      kubectl(
        ['apply', '--server-side', '--force-conflicts', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
      );
    const definitions = installObjects({ namespace: 'portcullis', values: defaultValues('0.1.0') }).filter(
      ({ kind }) => kind === 'CustomResourceDefinition',
    );

    it('takes the names of Kubernetes and of others for their kinds, not for ours', async () => {
      await using started = await start();
      target = started;
      await apply(formerDefinition(), AUTHORIZATION_POLICIES);
      await apply(...definitions);
      await kubectl(['wait', 'crd', '--all', '--for=condition=Established']);
      await apply(NETWORK_POLICY);
      let attempts = 0;
      await eventually(async () => {
        // With a new cache: API servers serve new names, and kubectl asks for them, some moments late.
        const fresh = ['--cache-dir', `fresh-${attempts++}`];
        assert.match(await kubectl(['get', 'polsrv', ...fresh]), /No resources found/);
        const named = await kubectl(['get', 'netpol', 'web', '-o', 'name', ...fresh]);
        assert.equal(named, 'networkpolicy.networking.k8s.io/web\n');
      });
      await kubectl(['api-resources', '--cached=false']);
      const served = (await kubectl(['api-resources', '--no-headers'])).split('\n');
      const resources = new Set(served.map((line) => COLUMNS.exec(line)?.groups?.['resource']));
      for (const { resource, singular, shortNames, kind } of allBuiltinKinds()) {
        if (!resources.has(resource) || resource === 'events') {
          continue;
        }
        for (const word of [resource, singular, ...shortNames]) {
          assert.match(await kubectl(['explain', word]), new RegExp(`^KIND: +${kind}\n`, 'mu'), word);
        }
      }
      assert.match(await kubectl(['explain', 'ap']), /^KIND: +AuthorizationPolicy\n/m);
      await namesPoliciesOnly(kubectl, apply);
      assert.doesNotMatch(await kubectl(['get', 'all', '-A', '-o', 'name']), /portcullis|kubewarden/);
    });
  });
}
