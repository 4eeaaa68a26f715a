// The promises of README and SECURITY.md, each tried as a user would: with kubectl and the command line, on the cluster of
// `portcullis start`. `npm run tour` prints them.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/modules/index.ts';
import type { PolicyRevision } from '../../src/resources/index.ts';
import type { CommandResult } from '../cli/command.ts';
import { StartedPortcullis } from '../cli/started.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { LayoutFolder } from '../registry/layout-folder.ts';
import { OTHER_TESTS } from './other-tests.ts';

const CREATE_PODS = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
const TENANT = ['--as=dev', '--as-group=system:authenticated'];
/** An expression that type-checks, and fails for every pod. */
const FAILING = "object.metadata.annotations['missing'] == 'x'";
/** Addresses that are not public. */
const PRIVATE = [
  '169.254.169.254',
  '100.100.100.200',
  '168.63.129.16',
  '192.0.0.192',
  '[fd20:ce::254]',
  '[64:ff9b::a9fe:a9fe]',
  '[::127.0.0.1]',
  '[2002:7f00:1::]',
];

/** A module that refuses these settings when it is loaded. */
const REFUSED = {
  module: new URL('../../examples/required-labels/policy.wasm', import.meta.url).href,
  settings: { labels: 'none' },
};

/** For what takes seconds on a busy machine. */
const PATIENT = { timeoutMs: 30_000 };

/** A host that is never a real one. */
const REGISTRY = 'policies.example';
const LABELS = readFileSync('examples/required-labels/policy.wasm');

type Spec = Readonly<Record<string, unknown>>;

/** A policy in CEL. */
function cel(name: string, expression: string, rest: Spec = {}, namespace?: string): object {
  return policy(
    name,
    { module: 'builtin:cel', settings: { validations: [{ expression, message: `${name} says no` }] }, ...rest },
    namespace,
  );
}

/** A policy that sets an annotation of pods. */
function annotating(name: string, value: string, namespace?: string): object {
  const expression = `Object{metadata: Object.metadata{annotations: {"owner": "${value}"}}}`;
  const settings = { mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }] };
  return policy(name, { module: 'builtin:cel', mutating: true, settings }, namespace);
}

function policy(name: string, spec: Spec, namespace?: string): object {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    spec: { mutating: false, rules: [CREATE_PODS], ...spec },
  };
}

/** A module that behaves alike and has other bytes. */
function withSection(module: Uint8Array, name: string): Uint8Array {
  return Buffer.concat([module, Buffer.from([0, name.length + 1, name.length]), Buffer.from(name)]);
}

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

function failed({ code, stdout, stderr }: CommandResult, message: RegExp): void {
  assert.equal(code, 1, stdout);
  assert.match(stderr, message);
}

describe('the tests that show what the tour does not try', () => {
  for (const { promise, file, title } of OTHER_TESTS) {
    it(`exist: ${promise}`, () => {
      assert.ok(readFileSync(file, 'utf8').includes(`it('${title}`), `${file} has no test "${title}"`);
    });
  }
});

describe('the tour', { skip: skipWithoutCluster(), timeout: 400_000 }, () => {
  let started: StartedPortcullis;
  let layout: LayoutFolder;
  let count = 0;

  const kubectl = (...args: readonly string[]): Promise<CommandResult> => started.kubectl(args);
  const apply = (object: object, ...args: readonly string[]): Promise<CommandResult> =>
    started.kubectl(['apply', '-f', '-', ...args], JSON.stringify(object));
  /** Creates a pod with a new name. */
  const run = (namespace = 'default', ...args: readonly string[]): Promise<CommandResult> =>
    kubectl('run', `web-${(count += 1)}`, '--image=nginx:1.27', '-n', namespace, ...args);
  const field = async (object: string, path: string, ...args: readonly string[]): Promise<string> =>
    succeeded(await kubectl('get', object, '-o', `jsonpath={${path}}`, ...args));
  const active = async (object: string, ...args: readonly string[]): Promise<void> => {
    succeeded(await kubectl('wait', object, '--for=jsonpath={.status.phase}=Active', '--timeout=30s', ...args));
  };
  const remove = async (...objects: readonly string[]): Promise<void> => {
    succeeded(await kubectl('delete', ...objects));
  };

  /** A namespace whose user `dev` may edit, and write policies. */
  async function tenant(name: string): Promise<void> {
    succeeded(await kubectl('create', 'namespace', name));
    for (const role of ['edit', 'portcullis-edit']) {
      succeeded(await kubectl('create', 'rolebinding', role, `--clusterrole=${role}`, '--user=dev', '-n', name));
    }
  }

  before(async () => {
    layout = new LayoutFolder();
    started = await StartedPortcullis.start('--sources-path', layout.sourcesFile(REGISTRY));
    await tenant('shop');
  });
  after(async () => {
    await started?.[Symbol.asyncDispose]();
    layout?.[Symbol.dispose]();
  });

  describe('a policy is enforced once it has served', () => {
    it('a new policy whose module cannot be fetched rejects nothing, and says that it is not enforced yet', async () => {
      succeeded(await apply(policy('typo', { module: 'https://no-such-host.invalid/policy.wasm' })));
      await eventually(async () => assert.equal(await field('cap/typo', '.status.reason'), 'FetchFailed'), PATIENT);
      assert.match(await field('cap/typo', '.status.phase'), /Pending|Error/);
      succeeded(await run());
      const message = await field('cap/typo', '.status.message');
      assert.match(message, /not enforced yet/i);
      assert.equal(await field('cap/typo', '.status.conditions[?(@.type=="Enforced")].status'), 'False');
      const metrics = await started.controllerMetrics();
      assert.match(metrics, /portcullis_policies\{[^}]*enforced="false"[^}]*\} 1/);
      await remove('cap/typo');
    });

    it('nor does it beside policies that are enforced, as a group with one bad member, or as a new policy with an old name', async () => {
      succeeded(await apply(cel('beside', "object.metadata.name != 'bad'")));
      await active('cap/beside');
      const good = { module: 'builtin:cel', settings: { validations: [{ expression: 'true' }] } };
      const policies = { good, bad: REFUSED };
      succeeded(
        await apply({
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'ClusterAdmissionPolicyGroup',
          metadata: { name: 'members' },
          spec: { expression: 'good() && bad()', message: 'no', policies, rules: [CREATE_PODS] },
        }),
      );
      succeeded(await apply(cel('renewed', "object.metadata.name != 'bad'")));
      await active('cap/renewed');
      await remove('cap/renewed');
      succeeded(await apply(policy('renewed', REFUSED)));
      for (const object of ['capg/members', 'cap/renewed']) {
        await eventually(async () => assert.equal(await field(object, '.status.reason'), 'InvalidSettings'), PATIENT);
        assert.match(await field(object, '.status.message'), /not enforced yet/);
      }
      succeeded(await run());
      failed(await kubectl('run', 'bad', '--image=nginx:1.27'), /beside says no/);
      await remove('cap/beside', 'capg/members', 'cap/renewed');
    });

    it('a policy that served stays enforced by its last good version', async () => {
      succeeded(await apply(cel('no-hosts', "object.metadata.name != 'bad'")));
      await active('cap/no-hosts');
      const broken = '{"spec":{"module":"file:///not/there/yet.wasm"}}';
      succeeded(await kubectl('patch', 'cap', 'no-hosts', '--type=merge', '-p', broken));
      succeeded(await kubectl('wait', 'cap/no-hosts', '--for=jsonpath={.status.phase}=Degraded', '--timeout=30s'));
      failed(await kubectl('run', 'bad', '--image=nginx:1.27'), /no-hosts says no/);
      await remove('cap/no-hosts');
    });

    it('a policy in monitor mode rejects nothing, whatever fails', async () => {
      succeeded(await apply(cel('watching', FAILING, { mode: 'monitor' })));
      await active('cap/watching');
      succeeded(await run());
      succeeded(await apply(cel('watching', FAILING)));
      await eventually(async () => failed(await run(), /watching/));
      await remove('cap/watching');
    });

    it('an administrator may choose what failing policies do', async () => {
      await using other = await StartedPortcullis.start('--degraded-policies=ignore', '--unserved-policies=reject');
      const tell = async (object: object): Promise<void> => {
        succeeded(await other.kubectl(['apply', '-f', '-'], JSON.stringify(object)));
      };
      const web = (name: string): Promise<CommandResult> => other.kubectl(['run', name, '--image=nginx:1.27']);
      await tell(cel('no-hosts', "object.metadata.name != 'bad'"));
      succeeded(
        await other.kubectl(['wait', 'cap/no-hosts', '--for=jsonpath={.status.phase}=Active', '--timeout=30s']),
      );
      failed(await web('bad'), /no-hosts says no/);
      await tell(policy('no-hosts', REFUSED));
      await eventually(async () => void succeeded(await web('bad')), PATIENT);
      await tell(policy('typo', REFUSED));
      await eventually(async () => failed(await web(`web-${(count += 1)}`), /typo/), PATIENT);
    });

    it('what can never work is refused at apply', async () => {
      const mutation = annotating('wrong', 'x') as { spec: Spec };
      failed(await apply({ ...mutation, spec: { ...mutation.spec, mutating: false } }), /mutati/);
      const settings = {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        paramRef: { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' },
        validations: [{ expression: 'params.data.size() > 0' }],
      };
      failed(await apply(policy('wrong', { module: 'builtin:cel', settings })), /contextAwareResources/);
      failed(await apply(cel('wrong', 'oldObject.spec.priority == 0')), /oldObject, which is null on CREATE/);
      const rules = [{ ...CREATE_PODS, resources: ['pod'] }];
      const { stderr } = await apply(cel('wrong', 'true', { rules }), '--dry-run=server');
      assert.match(stderr, /Did you mean pods\?/);
    });

    it('a rollback leads from protect back to monitor, and Git may apply again', async () => {
      const before = cel('modes', 'true', { mode: 'monitor' });
      succeeded(await apply(before, '--server-side'));
      await active('cap/modes');
      succeeded(await apply(cel('modes', 'true', { mode: 'protect' }), '--server-side'));
      await eventually(async () => assert.equal(await field('cap/modes', '.status.mode'), 'protect'));
      await active('cap/modes');
      succeeded(await started.portcullis(['rollout', 'undo', 'cap/modes']));
      await eventually(async () => assert.equal(await field('cap/modes', '.spec.mode'), 'monitor'));
      succeeded(await apply(cel('modes', 'true', { mode: 'protect' }), '--server-side'));
      await remove('cap/modes');
    });

    it('reset refuses while the cluster runs, and names the process; the greeting names the command', async () => {
      assert.ok(started.output.includes(`portcullis reset --data-dir ${started.dataDir}`), started.output);
      failed(await started.portcullis(['reset', '--data-dir', started.dataDir]), new RegExp(`process ${started.pid}`));
    });
  });

  describe('modules come from registries', () => {
    const module = `registry://${REGISTRY}/labels`;
    const tagged = (tag: string): object =>
      policy('pulled', { module: `${module}:${tag}`, settings: { labels: ['run'] } });
    const manifests = async (): Promise<readonly unknown[]> => {
      const revisions = await kubectl('get', 'policyrevisions', '-n', 'portcullis', '-o', 'json');
      const { items } = JSON.parse(succeeded(revisions)) as { items: readonly PolicyRevision[] };
      const own = items.filter(({ spec }) => spec.policyId === 'kw.cap.pulled');
      return own.map(({ spec, status }) => [spec.revision, status?.modules?.[0]?.manifest]);
    };

    it('a tag counts once: a tag that moves changes nothing until its new digest is named, and there is a way back', async () => {
      const first = layout.put(`${REGISTRY}/labels:v1`, LABELS);
      succeeded(await apply(tagged('v1')));
      await active('cap/pulled');
      const moved = layout.put(`${REGISTRY}/labels:v1`, withSection(LABELS, 'moved'));
      succeeded(await apply(tagged('v1')));
      assert.deepEqual(await manifests(), [[1, first]]);
      succeeded(await apply(tagged(`v1@${moved}`)));
      await eventually(async () => assert.equal(await field('cap/pulled', '.status.servingRevision'), '2'), PATIENT);
      succeeded(await started.portcullis(['rollout', 'undo', 'cap/pulled']));
      await eventually(async () => assert.equal(await field('cap/pulled', '.status.servingRevision'), '3'), PATIENT);
      assert.deepEqual(await manifests(), [
        [1, first],
        [2, moved],
        [3, first],
      ]);
    });

    it('a module with other bytes than its digest never serves, and the last good one does', async () => {
      const forged = withSection(LABELS, 'forged');
      layout.put(`${REGISTRY}/labels:v2`, forged);
      writeFileSync(layout.file(digestOf(forged)), withSection(LABELS, 'FORGED'));
      succeeded(await apply(tagged('v2')));
      succeeded(await kubectl('wait', 'cap/pulled', '--for=jsonpath={.status.phase}=Degraded', '--timeout=30s'));
      assert.equal(await field('cap/pulled', '.status.reason'), 'DigestMismatch');
      failed(await run('default', '--labels=other=x'), /has no label/);
      await remove('cap/pulled');
    });
  });

  describe('monitor mode informs', () => {
    it('with would-be denials in the status of the policy, and an event', async () => {
      succeeded(await apply(cel('would-deny', "object.metadata.name == 'only-this'", { mode: 'monitor' })));
      await active('cap/would-deny');
      succeeded(await run('shop', ...TENANT));
      const last = await eventually(
        async () => {
          const text = await field('cap/would-deny', '.status.monitored');
          assert.match(text, /web-\d+/);
          return text;
        },
        { timeoutMs: 90_000 },
      );
      for (const part of [
        '"count":1',
        '"since":',
        '"operation":"CREATE"',
        '"kind":"Pod"',
        '"namespace":"shop"',
        '"dev"',
      ]) {
        assert.ok(last.includes(part), `${part} in ${last}`);
      }
      const events = await kubectl('get', 'events', '-A', '--field-selector=involvedObject.name=would-deny');
      assert.match(succeeded(events), /would|Would/);
      await remove('cap/would-deny');
    });
  });

  describe('a tenant does not reach beyond its namespace', () => {
    it('no policy of a namespace sees RBAC', async () => {
      const rules = [{ ...CREATE_PODS, apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'] }];
      const spec = { module: 'builtin:cel', rules, settings: { validations: [{ expression: 'false' }] } };
      failed(await apply(policy('grab', spec, 'shop')), /rolebindings|rbac/);
    });

    it('the author of a policy needs the rights that it has', async () => {
      const rules = [{ ...CREATE_PODS, resources: ['resourcequotas'] }];
      const quotas = { ...annotating('quotas', 'x', 'shop') } as { spec: Spec };
      failed(
        await apply({ ...quotas, spec: { ...quotas.spec, rules } }, ...TENANT),
        /"dev" may not create, update resourcequotas/,
      );
      succeeded(await apply(cel('mine', 'true', {}, 'shop'), ...TENANT));
      await remove('admpol/mine', '-n', 'shop');
    });

    it('editors write policies only where an administrator binds the role', async () => {
      succeeded(await kubectl('create', 'namespace', 'other'));
      succeeded(await kubectl('create', 'rolebinding', 'edit', '--clusterrole=edit', '--user=dev', '-n', 'other'));
      failed(await apply(cel('mine', 'true', {}, 'other'), ...TENANT), /cannot (?:get|create|patch)/);
    });

    it('a namespace whose policy rejects everything can be deleted', async () => {
      await tenant('full');
      const rules = [{ ...CREATE_PODS, resources: ['configmaps', 'serviceaccounts'], operations: ['*'] }];
      succeeded(await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept', namespace: 'full' } }));
      succeeded(await apply(cel('never', 'false', { rules }, 'full')));
      await active('admpol/never', '-n', 'full');
      failed(await kubectl('delete', 'configmap', 'kept', '-n', 'full'), /never says no/);
      succeeded(await kubectl('delete', 'namespace', 'full', '--timeout=60s'));
    });

    it('policies of the cluster have the last word', async () => {
      succeeded(await apply(annotating('z-namespace', 'tenant', 'shop')));
      succeeded(await apply(annotating('a-cluster', 'cluster')));
      await active('admpol/z-namespace', '-n', 'shop');
      await active('cap/a-cluster');
      await eventually(async () => {
        succeeded(await run('shop'));
        assert.equal(await field(`pod/web-${count}`, '.metadata.annotations.owner', '-n', 'shop'), 'cluster');
      });
      await remove('admpol/z-namespace', '-n', 'shop');
      await remove('cap/a-cluster');
    });

    it('authorizers and host capabilities are about the user of the request', async () => {
      const expression =
        "authorizer.serviceAccount('kube-system', 'default').group('').resource('pods').check('get').allowed()";
      failed(await apply(cel('spy', expression, {}, 'shop')), /authorizer|serviceAccount/);
      const own = "authorizer.group('').resource('pods').check('get').allowed()";
      failed(
        await apply(cel('spy', own, {}, 'shop')),
        /add "kubernetes\/can_i" to spec.namespacedPoliciesCapabilities of PolicyServer default/,
      );
    });

    it('modules of tenants come from public addresses only', async () => {
      for (const address of PRIVATE) {
        for (const module of [`https://${address}/p.wasm`, `registry://${address}/p:v1`]) {
          failed(await apply(policy('inside', { module }, 'shop')), /private or special address/);
        }
      }
      const [first] = PRIVATE;
      succeeded(await apply(policy('inside', { module: `https://${first}/p.wasm` }), '--dry-run=server'));
    });
  });

  describe('the process', () => {
    it('answers loopback names only on its operations port', async () => {
      const { hostname, port } = new URL(operations());
      const statusFor = async (host: string): Promise<number | undefined> => {
        const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
        request({ hostname, port, path: '/policies', headers: { host } }, (response) => {
          response.resume();
          resolve(response.statusCode);
        })
          .on('error', reject)
          .end();
        return await promise;
      };
      assert.deepEqual([await statusFor(`localhost:${port}`), await statusFor('evil.example')], [200, 421]);
    });

    it('reads keys with escaped backslashes as they are, however often', async () => {
      const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
      const names = { plural: 'bags', singular: 'bag', kind: 'Bag' };
      const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }];
      succeeded(
        await apply({
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          metadata: { name: 'bags.example.com' },
          spec: { group: 'example.com', names, scope: 'Namespaced', versions },
        }),
      );
      succeeded(await kubectl('wait', 'crd/bags.example.com', '--for=condition=Established', '--timeout=30s'));
      const rules = [{ ...CREATE_PODS, apiGroups: ['example.com'], resources: ['bags'] }];
      succeeded(await apply(cel('no-lt', "!('ab<' in object.spec)", { rules })));
      await active('cap/no-lt');
      const bag = (name: string, key: string): object => ({
        apiVersion: 'example.com/v1',
        kind: 'Bag',
        metadata: { name, namespace: 'default' },
        spec: { [key]: 'x' },
      });
      const many = Array.from({ length: 60 }, (_, i) => bag(`b${i}`, 'ab\\'));
      succeeded(await apply({ apiVersion: 'v1', kind: 'List', items: many }));
      failed(await apply(bag('denied', 'ab<')), /no-lt says no/);
      await remove('cap/no-lt');
    });

    it('explains what fields do', async () => {
      assert.match(succeeded(await kubectl('explain', 'cap.spec.module')), /registry:\/\//);
      assert.match(succeeded(await kubectl('explain', 'cap.spec.backgroundAudit')), /existing objects are judged/);
    });
  });

  /** Base URL of the operations port. */
  function operations(): string {
    return /https?:\/\/(?:127\.0\.0\.1|localhost):\d+(?=\/(?:metrics|policies|readyz))/.exec(started.output)?.[0] ?? '';
  }
});
