// `portcullis start`: the first minute, with and without kubectl, and data after a restart.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer as createHttpsServer, request as httpsRequest } from 'node:https';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json, text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { admissionReview } from '../../src/cli/policy/admission-request.ts';
import type { ClusterAdmissionPolicy, PolicyRevision } from '../../src/resources/index.ts';
import type { JsonObject } from '../../src/values/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { eventually } from '../cluster/eventually.ts';
import { webhookConfiguration, webhookConfigurationPath } from '../cluster/webhook-configuration.ts';
import { type CommandResult, ENVIRONMENT, ROOT } from './command.ts';
import { StartedPortcullis } from './started.ts';

const POLICY = 'examples/pinned-images/policy.yaml';
/** The webhook of cluster-wide validating policies with failurePolicy Fail. */
const WEBHOOK = 'validating.fail.equivalent.cluster.v1.portcullis.dev';
const REJECTION = 'cap/pinned-images: nginx: an image needs a tag that says which version runs';
/** A mistake that only loading shows. */
const BROKEN = '{"spec":{"module":"file:///not/there/yet.wasm"}}';
/** A mistake that validation finds. */
const MISTAKEN = '{"spec":{"settings":{"validations":[{"expression":"object.spec.contaners"}]}}}';

/** The annotation of namespaces with the user of a tool. */
const TOOL_UID = 'toolforge.example.com/uid';

/** The review that a webhook gets which adds a volume. */
interface InjectedReview {
  readonly request: {
    readonly uid: string;
    readonly object: { readonly metadata: { readonly labels: { mount: string } } };
  };
}

/** The page of policies, as far as it is read here. */
interface PoliciesPage {
  readonly source: { readonly error: string | null };
  readonly policies: readonly { readonly id: string; readonly phase: string }[];
}

/** The answer of a policy server to the review of a new object. */
async function reviewed(url: string, object: JsonObject): Promise<string> {
  const headers = { 'content-type': 'application/json' };
  const sent = httpsRequest(url, { method: 'POST', headers, rejectUnauthorized: false });
  sent.end(JSON.stringify(admissionReview({ object }, {})));
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return await text(response);
}

interface Layout {
  readonly manifests: readonly { readonly digest: string }[];
}

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

function pod(name: string, image: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image }] },
  });
}

describe('portcullis start', () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start();
  });
  after(() => started[Symbol.asyncDispose]());

  it('prints how to reach its cluster, and changes no files of the user', () => {
    assert.match(started.output, /^Cluster +https:\/\/(?:127\.0\.0\.1|localhost):\d+ /m);
    assert.ok(started.output.includes(`export KUBECONFIG=${started.kubeconfig}\n`), started.output);
    assert.equal(statSync(started.kubeconfig).mode & 0o777, 0o600);
    assert.equal(existsSync(`${started.home}/.kube`), false);
  });

  it('names the command that removes its data, which refuses while it runs and names its process', async () => {
    const [, named = ''] = /^Data .*\(`portcullis (.+)` removes it\)$/m.exec(started.output) ?? [];
    assert.equal(named, `reset --data-dir ${started.dataDir}`);
    for (const args of [named.split(' '), ['start', '--data-dir', started.dataDir]]) {
      const { code, stderr } = await started.portcullis(args);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`process ${started.pid} runs \`portcullis start\` on it`));
      assert.equal(/another folder with --data-dir FOLDER/.test(stderr), args[0] === 'start', stderr);
    }
    assert.equal((await started.portcullis(['get', 'policyservers'])).code, 0);
  });

  it('prints a line for each of four steps: apply, be rejected, break and see why, roll back', () => {
    const lines = [...started.output.matchAll(/^ {2}kubectl (\w+) (?:.*&& kubectl (\w+))?/gm)];
    assert.deepEqual(
      lines.map(([, first, last]) => last ?? first),
      ['apply', 'run', 'describe', 'annotate'],
    );
  });

  it('refuses install and uninstall on its cluster', async () => {
    for (const command of ['install', 'uninstall', 'doctor']) {
      const { code, stdout, stderr } = await started.portcullis([command]);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, /the cluster of `portcullis start`, which has no nodes.*\n.*--kubeconfig FILE/);
    }
  });

  it('gives its controller and its policy server no more rights than they need', async () => {
    const user = (name: string): string => `system:serviceaccount:portcullis:${name}`;
    for (const [name, verb, resource, isAllowed] of [
      ['portcullis-controller', 'create', { group: 'portcullis.dev', resource: 'policyrevisions' }, true],
      ['portcullis-controller', 'create', { group: '', resource: 'pods' }, false],
      ['portcullis-controller', 'get', { group: '', resource: 'secrets' }, false],
      ['policy-server-default', 'list', { group: 'portcullis.dev', resource: 'policyrevisions' }, true],
      ['policy-server-default', 'update', { group: 'portcullis.dev', resource: 'policyrevisions' }, false],
    ] as const) {
      const resourceAttributes = { namespace: 'portcullis', verb, ...resource };
      const review = {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user: user(name), resourceAttributes },
      };
      const { status } = (await started.create('authorization.k8s.io/v1', 'subjectaccessreviews', review)) as {
        status: { allowed: boolean };
      };
      assert.equal(status.allowed, isAllowed, `${name} ${verb} ${resource.resource}`);
    }
  });

  it('has metrics of its controllers', async () => {
    const address = /^Controller +(http:\S+)\/metrics/m.exec(started.output)?.[1] ?? assert.fail(started.output);
    const page = await (await fetch(`${address}/metrics`)).text();
    assert.match(page, /^portcullis_cache_objects\{cache="clusteradmissionpolicies\.policies\.kubewarden\.io"\} 0$/m);
  });

  describe('with its own commands', () => {
    it('applies a policy, and is rejected by it', async () => {
      assert.equal(
        succeeded(await started.portcullis(['apply', '-f', POLICY])),
        'clusteradmissionpolicy.policies.kubewarden.io/pinned-images created\n',
      );
      succeeded(
        await started.portcullis(['wait', 'cap/pinned-images', '--for=condition=PolicyActive', '--timeout=20s']),
      );
      const rejected = await eventually(async () => {
        const result = await started.portcullis(['apply', '-f', '-', '--dry-run'], pod('web', 'nginx'));
        assert.equal(result.code, 1, result.stdout);
        return result;
      });
      assert.ok(
        rejected.stderr.includes(`admission webhook "${WEBHOOK}" denied the request: ${REJECTION}`),
        rejected.stderr,
      );
      assert.equal(
        succeeded(await started.portcullis(['apply', '-f', '-'], pod('web', 'nginx:1.29'))),
        'pod/web created\n',
      );
    });

    it('shows it in a table, and describes it', async () => {
      assert.match(succeeded(await started.portcullis(['get', 'cap'])), /^NAME +.*\npinned-images +.*Active/);
      const description = succeeded(await started.portcullis(['describe', 'cap', 'pinned-images']));
      assert.match(description, /^Name: +pinned-images$/m);
      assert.match(description, /^ {2}PolicyActive +True +\S+ +Serving/m);
      assert.match(description, /^ {2}Normal +Serving /m);
    });

    it('shows all of our kinds without arguments, and finds a policy by its name alone', async () => {
      const all = succeeded(await started.portcullis(['get']));
      assert.match(all, /^clusteradmissionpolicy\.policies\.kubewarden\.io\/pinned-images +.*Active/m);
      assert.match(all, /^policyserver\.policies\.kubewarden\.io\/default /m);
      assert.match(succeeded(await started.portcullis(['get', 'pinned-images'])), /^NAME +.*\npinned-images /);
      assert.match(succeeded(await started.portcullis(['get', 'all'])), /^pod\/web |^NAME +.*\npod\/web /m);
      assert.match(succeeded(await started.portcullis(['describe', 'pinned-images'])), /^Name: +pinned-images$/m);
    });

    it('says what a mistaken type or name may mean', async () => {
      const type = await started.portcullis(['get', 'deploymnts']);
      assert.deepEqual([type.code, /Did you mean deployments\?/.test(type.stderr)], [2, true], type.stderr);
      const name = await started.portcullis(['rollout', 'status', 'no-such-policy']);
      assert.match(name.stderr, /no resource type "no-such-policy", and no policy of this name/);
      const kind = JSON.stringify({ apiVersion: 'apps/v1', kind: 'Deploymnt', metadata: { name: 'one' } });
      assert.match((await started.portcullis(['apply', '-f', '-'], kind)).stderr, /did you mean Deployment\?/);
      const group = JSON.stringify({ apiVersion: 'v1', kind: 'Deployment', metadata: { name: 'one' } });
      assert.match((await started.portcullis(['apply', '-f', '-'], group)).stderr, /it has Deployment in apps\/v1/);
    });

    it('leaves out managedFields, unless they are asked for', async () => {
      const get = ['get', 'pod', 'web', '-o', 'yaml'];
      assert.doesNotMatch(succeeded(await started.portcullis(get)), /managedFields/);
      assert.match(succeeded(await started.portcullis([...get, '--show-managed-fields'])), /managedFields:/);
    });

    it('does not wait for a condition of what does not exist, but for its creation', async () => {
      const missing = await started.portcullis(['wait', 'pod/never', '--for=condition=Ready']);
      assert.deepEqual([missing.code, missing.stderr], [1, 'error: pods "never" not found\n']);
      succeeded(await started.portcullis(['wait', 'pod/web', '--for=create']));
    });

    it('shows the line of a field that is refused, and what it probably means', async () => {
      const manifest = readFileSync(join(ROOT, POLICY), 'utf8').replace('module:', 'modul:');
      const { code, stderr } = await started.portcullis(['apply', '-f', '-'], manifest);
      assert.equal(code, 1);
      const line = manifest.split('\n').findIndex((text) => text.includes('modul:')) + 1;
      const place = `error: standard input:${line}:3 ClusterAdmissionPolicy pinned-images: `;
      assert.ok(stderr.startsWith(place), stderr);
      assert.match(
        stderr,
        /\.spec\.modul: field not declared in schema, did you mean "module"\?\n +modul: builtin:cel\n/,
      );
    });

    it('refuses an input without manifests', async () => {
      const { code, stderr } = await started.portcullis(['apply', '-f', '-'], '---\n# nothing\n');
      assert.equal(code, 1);
      assert.match(stderr, /^error: standard input: no manifests\n/);
    });

    it('creates and patches a pod, as a dry run of the client or the server or in earnest', async () => {
      const apply = ['apply', '-f', '-'];
      const manifest = pod('quick', 'nginx:1.29');
      assert.equal(
        succeeded(await started.portcullis([...apply, '--dry-run=client'], manifest)),
        'pod/quick created (dry run)\n',
      );
      assert.equal(
        succeeded(await started.portcullis([...apply, '--dry-run'], manifest)),
        'pod/quick created (server dry run)\n',
      );
      assert.match((await started.portcullis(apply, pod('quick', 'nginx'))).stderr, /nginx: an image needs a tag/);
      assert.equal(succeeded(await started.portcullis(apply, manifest)), 'pod/quick created\n');
      const patch = ['patch', 'pod', 'quick', '-p', '{"metadata":{"labels":{"tier":"front"}}}'];
      assert.equal(
        succeeded(await started.portcullis([...patch, '--dry-run=server'])),
        'pod/quick patched (server dry run)\n',
      );
      assert.equal(succeeded(await started.portcullis(patch)), 'pod/quick patched\n');
      assert.equal(succeeded(await started.portcullis(patch)), 'pod/quick patched (no change)\n');
      assert.equal(
        succeeded(await started.portcullis([...apply, '--dry-run=client'], manifest)),
        'pod/quick configured (dry run)\n',
      );
      assert.equal(
        succeeded(await started.portcullis(['delete', '--dry-run', 'pod', 'quick'])),
        'pod/quick deleted (server dry run)\n',
      );
      succeeded(await started.portcullis(['delete', 'pod', 'quick']));
    });

    it('shows events, all or of one object, and the versions', async () => {
      const shown = succeeded(await started.portcullis(['events', '--for', 'pinned-images']));
      assert.match(shown, /^LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n.*ClusterAdmissionPolicy\/pinned-images/);
      assert.match(succeeded(await started.portcullis(['events', '-A'])), /^NAMESPACE +LAST SEEN/);
      assert.match(
        succeeded(await started.portcullis(['version'])),
        /^Client Version: v\S+\nServer Version: v\S+\+portcullis\n$/,
      );
    });

    it('shows new events as they come', async () => {
      await using watching = started.follow(['events', '-w', '--for', 'pinned-images']);
      await eventually(async () => assert.match(watching.output, /^LAST SEEN/));
      const before = watching.output.split('\n').length;
      succeeded(await started.portcullis(['patch', 'pinned-images', '-p', '{"spec":{"module":"file:///none.wasm"}}']));
      await eventually(async () => {
        assert.match(
          watching.output
            .split('\n')
            .slice(before - 1)
            .join('\n'),
          /Warning +.*none\.wasm/,
        );
      });
      succeeded(await started.portcullis(['rollout', 'undo', 'pinned-images']));
      succeeded(await started.portcullis(['rollout', 'status', 'pinned-images']));
    });

    it('deletes the existing ones of several objects, and reports the others as missing', async () => {
      succeeded(await started.portcullis(['apply', '-f', '-'], pod('gone', 'nginx:1.29')));
      const { code, stdout, stderr } = await started.portcullis(['delete', 'pods', 'nobody', 'gone']);
      assert.deepEqual([code, stdout], [1, 'pod/gone deleted\n']);
      assert.match(stderr, /^error: pods "nobody" not found\n.*1 of 2 objects could not be deleted\n$/s);
    });

    it('uses the namespace of a manifest, and refuses another one', async () => {
      const metadata = { name: 'placed', namespace: 'kube-public' };
      const placed = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
      for (const command of ['apply', 'delete']) {
        const { code, stderr } = await started.portcullis([command, '-f', '-', '-n', 'default'], placed);
        assert.equal(code, 1);
        assert.match(stderr, /ConfigMap placed is in namespace kube-public, but --namespace is default/);
        succeeded(await started.portcullis([command, '-f', '-'], placed));
      }
    });

    it('reports what holds a deleted object', async () => {
      const metadata = { name: 'held', finalizers: ['example.com/hold'] };
      const held = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata });
      succeeded(await started.portcullis(['apply', '-f', '-'], held));
      const { code, stderr } = await started.portcullis(['delete', 'cm', 'held', '--timeout=200ms']);
      assert.equal(code, 1);
      assert.match(stderr, /configmap\/held is not gone after 200ms: its finalizers have to be removed first/);
      const shown = succeeded(await started.portcullis(['describe', 'cm', 'held']));
      assert.match(shown, /held by example\.com\/hold/);
    });

    it('installs a kind and an object of it from one file, and describes it whatever its status is', async () => {
      const names = { plural: 'oddities', kind: 'Oddity' };
      const schema = {
        openAPIV3Schema: {
          type: 'object',
          properties: { status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      };
      const versions = [{ name: 'v1', served: true, storage: true, schema }];
      const documents = [
        {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          metadata: { name: 'oddities.example.com' },
          spec: { group: 'example.com', scope: 'Cluster', names, versions },
        },
        {
          apiVersion: 'example.com/v1',
          kind: 'Oddity',
          metadata: { name: 'one' },
          status: { conditions: [null, 5, { type: 1, status: {}, lastTransitionTime: true, reason: '\u001b[31mred' }] },
        },
      ];
      const text = documents.map((document) => JSON.stringify(document)).join('\n---\n');
      succeeded(await started.portcullis(['apply', '-f', '-'], text));
      assert.match(succeeded(await started.portcullis(['describe', 'oddity', 'one'])), /^ {2}1 +<unknown> +red$/m);
      succeeded(await started.portcullis(['delete', '-f', '-'], text));
      const again = await started.portcullis(['delete', '-f', '-'], text);
      assert.equal(again.code, 1);
      assert.match(again.stderr, /the server has no kind Oddity in example\.com\/v1\nNothing was deleted\./);
    });

    it('deletes it, and requests are not rejected any more', async () => {
      assert.equal(
        succeeded(await started.portcullis(['delete', '-f', POLICY])),
        'clusteradmissionpolicy.policies.kubewarden.io/pinned-images deleted\n',
      );
      await eventually(async () =>
        succeeded(await started.portcullis(['apply', '-f', '-', '--dry-run'], pod('free', 'nginx'))),
      );
    });
  });

  describe('with kubectl', { skip: skipWithoutCluster() }, () => {
    it('applies a policy, and is rejected by it', async () => {
      succeeded(await started.kubectl(['apply', '-f', POLICY]));
      succeeded(await started.kubectl(['wait', 'cap/pinned-images', '--for=condition=PolicyActive', '--timeout=20s']));
      const rejected = await eventually(async () => {
        const result = await started.kubectl(['run', 'other', '--image=nginx', '--dry-run=server']);
        assert.equal(result.code, 1, result.stdout);
        return result;
      });
      assert.equal(
        rejected.stderr,
        `Error from server: admission webhook "${WEBHOOK}" denied the request: ${REJECTION}\n`,
      );
      assert.equal(succeeded(await started.kubectl(['run', 'other', '--image=nginx:1.29'])), 'pod/other created\n');
    });

    it('is rejected by a new policy as soon as a revision serves, and not before', async () => {
      const manifest = (module: string): string =>
        JSON.stringify({
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'ClusterAdmissionPolicy',
          metadata: { name: 'typo' },
          spec: {
            module,
            mutating: false,
            rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
            settings: { validations: [{ expression: "object.metadata.name != 'typo'", message: 'the typo serves' }] },
          },
        });
      const run = (name: string): Promise<CommandResult> =>
        started.kubectl(['run', name, '--image=nginx:1.29', '--dry-run=server']);
      succeeded(await started.kubectl(['apply', '-f', '-'], manifest('file:///not/there/new.wasm')));
      succeeded(await started.kubectl(['wait', 'cap/typo', '--for=jsonpath={.status.phase}=Error', '--timeout=20s']));
      const description = succeeded(await started.kubectl(['describe', 'cap', 'typo']));
      assert.match(description, /the policy is not enforced yet/);
      assert.match(description, /NotServedYet/);
      // Another policy of the webhook is enforced.
      assert.ok((await started.kubectl(['run', 'x', '--image=nginx', '--dry-run=server'])).stderr.includes(REJECTION));
      succeeded(await run('typo'));

      succeeded(await started.kubectl(['apply', '-f', '-'], manifest('builtin:cel')));
      succeeded(await started.kubectl(['wait', 'cap/typo', '--for=condition=Enforced', '--timeout=20s']));
      assert.match((await run('typo')).stderr, /the typo serves/);

      succeeded(await started.kubectl(['apply', '-f', '-'], manifest('file:///not/there/new.wasm')));
      succeeded(
        await started.kubectl(['wait', 'cap/typo', '--for=jsonpath={.status.phase}=Degraded', '--timeout=20s']),
      );
      assert.match((await run('typo')).stderr, /the typo serves/);
      succeeded(await started.kubectl(['delete', 'cap', 'typo']));
    });

    it('refuses a change that cannot work, with the problem and its position', async () => {
      const refused = await started.kubectl(['patch', 'cap', 'pinned-images', '--type=merge', '-p', MISTAKEN]);
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /contaners/);
    });

    it('sees why a change does not serve, while the last good one does', async () => {
      succeeded(await started.kubectl(['patch', 'cap', 'pinned-images', '--type=merge', '-p', BROKEN]));
      const shown = await eventually(async () => {
        const text = succeeded(await started.kubectl(['get', 'cap', 'pinned-images']));
        assert.match(text, /Degraded/);
        return text;
      });
      assert.match(shown, /pinned-images/);
      const description = succeeded(await started.kubectl(['describe', 'cap', 'pinned-images']));
      assert.match(description, /yet\.wasm/);
      const still = await started.kubectl(['run', 'more', '--image=nginx']);
      assert.ok(still.stderr.includes(REJECTION), still.stderr + still.stdout);
      succeeded(await started.kubectl(['apply', '-f', POLICY]));
      succeeded(
        await started.kubectl(['wait', 'cap/pinned-images', '--for=jsonpath={.status.phase}=Active', '--timeout=20s']),
      );
    });
  });

  it('keeps all data when it is killed and started again', async () => {
    succeeded(await started.portcullis(['apply', '-f', POLICY]));
    succeeded(await started.portcullis(['wait', 'cap/pinned-images', '--for=condition=PolicyActive', '--timeout=20s']));
    await started.end('SIGKILL');
    await started.begin();
    assert.match(started.output, /^kw\.cap\.pinned-images +protect +Active /m);
    assert.match(
      started.output,
      /^This is the cluster of an earlier start, with 1 policy and all that was changed\nin it\.$/m,
    );
    assert.doesNotMatch(started.output, /kubectl apply|Governance: three/);
    const rejected = await started.portcullis(['apply', '-f', '-', '--dry-run'], pod('again', 'nginx'));
    assert.ok(rejected.stderr.includes(REJECTION), rejected.stderr + rejected.stdout);
    assert.equal(succeeded(await started.portcullis(['get', 'pod/web', '-o', 'name'])), 'pod/web\n');
  });

  it('refuses a policy of a namespace that needs a host capability, until the PolicyServer names it', async () => {
    const object = (kind: string, metadata: object, spec: object): string =>
      JSON.stringify({ apiVersion: 'policies.kubewarden.io/v1', kind, metadata, spec });
    const expression = "authorizer.path('/healthz').check('get').allowed() || true";
    const asking = object(
      'AdmissionPolicy',
      { name: 'asking', namespace: 'default' },
      {
        module: 'builtin:cel',
        mutating: false,
        settings: { validations: [{ expression }] },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['secrets'], operations: ['CREATE'] }],
      },
    );
    const refused = await started.portcullis(['apply', '-f', '-'], asking);
    assert.equal(refused.code, 1, refused.stdout);
    assert.match(
      refused.stderr,
      /add "kubernetes\/can_i" to spec\.namespacedPoliciesCapabilities of PolicyServer default \(now: none\)/,
    );
    const spec = { image: 'portcullis', replicas: 1, namespacedPoliciesCapabilities: ['kubernetes/can_i'] };
    const server = object('PolicyServer', { name: 'default' }, spec);
    succeeded(await started.portcullis(['apply', '-f', '-'], server));
    assert.equal(await started.end(), 0);
    await started.begin();
    succeeded(await started.portcullis(['apply', '-f', '-'], asking));
    succeeded(
      await started.portcullis(['wait', 'ap/asking', '--for', 'jsonpath={.status.phase}=Active', '--timeout', '60s']),
    );
    succeeded(await started.portcullis(['delete', 'ap/asking']));
  });

  it('refuses a PolicyServer that requires signatures, and names the flag that does', async () => {
    const { apiVersion, kind, metadata, spec } = JSON.parse(
      succeeded(await started.portcullis(['get', 'policyserver/default', '-o', 'json'])),
    ) as { apiVersion: string; kind: string; metadata: { name: string }; spec: object };
    const { name } = metadata;
    const wanted = { apiVersion, kind, metadata: { name }, spec: { ...spec, verificationConfig: 'signatures' } };
    const { code, stderr } = await started.portcullis(['apply', '-f', '-'], JSON.stringify(wanted));
    assert.equal(code, 1);
    assert.match(stderr, /spec\.verificationConfig: Forbidden: .*--verification-path.*\[verification\]/);
  });

  it('stops cleanly', async () => {
    assert.equal(await started.end(), 0);
    assert.match(started.output, /Stopping…\n$/);
  });
});

describe('portcullis start --examples', () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start('--examples');
  });
  after(() => started[Symbol.asyncDispose]());

  it('serves the examples', () => {
    for (const id of [
      'kw.cap.required-labels',
      'kw.cap.image-registries',
      'kw.cap.tool-pods',
      'kw.capg.privileged-by-exception',
    ]) {
      assert.match(started.output, new RegExp(`^${id.replaceAll('.', '\\.')} +\\w+ +Active `, 'm'));
    }
  });

  it('pulls the module of one example from a registry, through a mirror without network', async () => {
    assert.match(started.output, /^kw\.cap\.required-labels .* Active +required-labels:1\.0\.0$/m);
    const [manifest] = (JSON.parse(readFileSync('examples/registry/index.json', 'utf8')) as Layout).manifests;
    const shown = succeeded(
      await started.portcullis(['rollout', 'history', 'cap/required-labels', '--revision', '1', '-o', 'json']),
    );
    const { status } = JSON.parse(shown) as PolicyRevision;
    assert.equal(status?.modules?.[0]?.manifest, manifest?.digest);
  });

  it('lets a policy read the cluster: a pod is rejected until its namespace has an owner', async () => {
    const change = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'orphans', labels: { 'examples.portcullis.dev/enforce': 'true' } },
    };
    succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(change)));
    const orphan = JSON.stringify({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'orphans', labels: { 'app.kubernetes.io/name': 'web' } },
      spec: {
        containers: [
          { name: 'web', image: 'example.com/shop/web:1', resources: { limits: { memory: '64Mi', cpu: '1' } } },
        ],
      },
    });
    await eventually(async () => {
      const { stderr } = await started.portcullis(['apply', '-f', '-', '--dry-run'], orphan);
      assert.match(stderr, /denied the request: cap\/namespace-owner: .*orphans/);
    });
    Object.assign(change.metadata.labels, { owner: 'me' });
    succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(change)));
    await eventually(async () => succeeded(await started.portcullis(['apply', '-f', '-', '--dry-run'], orphan)));
  });

  it('lets a policy read kinds that an installation grants to none by default', async () => {
    const config = { apiVersion: 'v1', kind: 'ConfigMap' };
    const limits = { ...config, metadata: { name: 'limits', namespace: 'default' }, data: { names: 'good' } };
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'named-in-limits' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        contextAwareResources: [config],
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['serviceaccounts'], operations: ['CREATE'] }],
        settings: {
          paramKind: config,
          paramRef: { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' },
          validations: [{ expression: 'object.metadata.name == params.data.names' }],
        },
      },
    };
    for (const object of [limits, policy]) {
      succeeded(await started.portcullis(['apply', '-f', '-'], JSON.stringify(object)));
    }
    const active = ['cap/named-in-limits', '--for', 'jsonpath={.status.phase}=Active', '--timeout', '60s'];
    succeeded(await started.portcullis(['wait', ...active]));
    const account = (name: string): Promise<CommandResult> => {
      const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'default' } };
      return started.portcullis(['apply', '-f', '-', '--dry-run'], JSON.stringify(object));
    };
    await eventually(async () => assert.match((await account('bad')).stderr, /cap\/named-in-limits/));
    await eventually(async () => succeeded(await account('good')));
    succeeded(await started.portcullis(['delete', 'cap/named-in-limits']));
  });

  it('adds the defaults of a pod profile, and checks what a later policy adds', async () => {
    const page = readFileSync('docs/pod-profile.md', 'utf8');
    const profile = /^```yaml\n(apiVersion: policies.*?)^```/ms.exec(page)?.[1] ?? '';
    // The example policy tool-pods, which applies as well, takes the same user from the annotation.
    const annotations = { [TOOL_UID]: '1000' };
    const metadata = { name: 'tools', labels: { tenancy: 'tool' }, annotations };
    const tools = { apiVersion: 'v1', kind: 'Namespace', metadata };
    const expression =
      "[JSONPatch{op: 'add', path: '/spec/volumes', value: [{'name': dyn('etc'), 'hostPath': dyn({'path': '/etc'})}]}]";
    const injector = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'volume-injector' },
      spec: {
        module: 'builtin:cel',
        mutating: true,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        objectSelector: { matchLabels: { inject: 'volume' } },
        settings: { mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }] },
      },
    };
    for (const text of [JSON.stringify(tools), profile, JSON.stringify(injector)]) {
      succeeded(await started.portcullis(['apply', '-f', '-'], text));
    }
    for (const name of ['cap/pod-profile', 'cap/volume-injector']) {
      succeeded(
        await started.portcullis(['wait', name, '--for', 'jsonpath={.status.phase}=Active', '--timeout', '60s']),
      );
    }
    const pod = (name: string, labels: object): string =>
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'tools', labels },
        spec: { containers: [{ name: 'web', image: 'example.com/shop/web:1' }] },
      });
    await eventually(async () => {
      const { stderr } = await started.portcullis(['apply', '-f', '-'], pod('injected', { inject: 'volume' }));
      assert.match(
        stderr,
        /cap\/pod-profile: .*spec\.volumes\[0\]: expected a volume of an allowed type: .*"hostPath"/,
      );
    });
    succeeded(await started.portcullis(['apply', '-f', '-'], pod('web', {})));
    const stored = succeeded(await started.portcullis(['get', 'pod/web', '-n', 'tools', '-o', 'json']));
    const { spec } = JSON.parse(stored) as {
      spec: { securityContext: object; containers: { securityContext: object }[] };
    };
    const { securityContext } = spec;
    const id = 1000;
    const seccompProfile = { type: 'RuntimeDefault' };
    const expected = { runAsUser: id, runAsGroup: id, fsGroup: id, supplementalGroups: [1], seccompProfile };
    assert.deepEqual(securityContext, expected);
    assert.deepEqual(spec.containers[0]?.securityContext, {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
    });
    succeeded(await started.portcullis(['delete', 'cap/pod-profile', 'cap/volume-injector']));
  });

  describe('with tools, each of which has its user in an annotation of its namespace', () => {
    interface Pod {
      readonly spec: { readonly securityContext: object; readonly initContainers: readonly object[] };
    }
    const createPod = async (namespace: string, securityContext: object, labels = {}): Promise<Pod['spec']> => {
      const containers = [{ name: 'bot', image: 'example.com/toolforge/python:3' }];
      const pod = { metadata: { generateName: 'bot-', labels }, spec: { securityContext, containers } };
      const created = await started.request('POST', `/api/v1/namespaces/${namespace}/pods`, pod);
      return (created as Pod).spec;
    };
    const userIn = async (namespace: string): Promise<object> => (await createPod(namespace, {})).securityContext;
    const defaults = (id: number): object => ({
      runAsUser: id,
      runAsGroup: id,
      fsGroup: id,
      supplementalGroups: [1],
      seccompProfile: { type: 'RuntimeDefault' },
    });
    const annotate = (namespace: string, uid: string | null): Promise<unknown> =>
      started.request('PATCH', `/api/v1/namespaces/${namespace}`, { metadata: { annotations: { [TOOL_UID]: uid } } });
    const isDenied = (pod: Promise<unknown>, message: string): Promise<void> =>
      assert.rejects(pod, ({ message: denial }: Error) => {
        assert.ok(denial.endsWith(` denied the request: cap/tool-pods: ${message}`), denial);
        return true;
      });

    it('gives pods the user of their tool, and denies other users', async () => {
      for (const [namespace, id] of [
        ['tool-wikibot', 52_503],
        ['tool-heritage', 53_000],
      ] as const) {
        assert.deepEqual(await userIn(namespace), defaults(id));
        await isDenied(
          createPod(namespace, { runAsUser: 0 }),
          `violates the pod profile: spec.securityContext.runAsUser: expected ${id}, got 0`,
        );
      }
    });

    it('warns who writes a Deployment whose pods it would deny, and leaves the Deployment as it is', async () => {
      const container = { name: 'bot', image: 'example.com/toolforge/python:3' };
      const labels = { app: 'root' };
      const template = { metadata: { labels }, spec: { securityContext: { runAsUser: 0 }, containers: [container] } };
      const deployment = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'root', namespace: 'tool-wikibot' },
        spec: { replicas: 0, selector: { matchLabels: labels }, template },
      };
      const args = ['apply', '-f', '-', '-o', 'json'];
      const { code, stdout, stderr } = await started.kubectl(args, JSON.stringify(deployment));
      assert.equal(code, 0, stderr);
      assert.match(
        stderr,
        /^Warning: .*tool-pods: pods would be rejected, in the pod template \(spec\.template\): .*expected 52503, got 0/m,
      );
      const { spec } = JSON.parse(stdout) as typeof deployment;
      assert.deepEqual(spec.template.spec.securityContext, { runAsUser: 0 });
    });

    it('gives the pods that follow a change of the annotation the new user', async () => {
      await annotate('tool-heritage', '53001');
      await eventually(async () => assert.deepEqual(await userIn('tool-heritage'), defaults(53_001)));
      assert.deepEqual(await userIn('tool-wikibot'), defaults(52_503));
    });

    it('checks what another webhook adds afterwards, and gives it the defaults', async () => {
      const pki = (file: string): string => readFileSync(join(started.dataDir, 'pki', file), 'utf8');
      const certificate = { cert: pki('tls.crt'), key: pki('tls.key') };
      await using injector = createHttpsServer(certificate, (request, response) => {
        void json(request).then((review) => {
          const { uid, object } = (review as InjectedReview).request;
          const hostPath = { path: Buffer.from(object.metadata.labels.mount, 'hex').toString() };
          const patch = [
            { op: 'add', path: '/spec/volumes', value: [{ name: 'injected', hostPath }] },
            { op: 'add', path: '/spec/initContainers', value: [{ name: 'injected', image: 'example.com/sidecar:1' }] },
          ];
          const answer = { uid, allowed: true, patchType: 'JSONPatch', patch: btoa(JSON.stringify(patch)) };
          const envelope = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response: answer };
          response.setHeader('content-type', 'application/json').end(JSON.stringify(envelope));
        });
      }).listen(0, '127.0.0.1');
      await once(injector, 'listening');
      const configuration = webhookConfiguration({
        name: 'zz-injector',
        kind: 'mutating',
        url: `https://localhost:${(injector.address() as AddressInfo).port}/`,
        caBundle: pki('ca.crt'),
        rules: [{ operations: ['CREATE'], resources: ['pods'] }],
        objectSelector: { matchExpressions: [{ key: 'mount', operator: 'Exists' }] },
      });
      await started.request('POST', webhookConfigurationPath('mutating'), configuration);
      const labelled = (path: string): object => ({ mount: Buffer.from(path).toString('hex') });
      const { initContainers } = await createPod('tool-wikibot', {}, labelled('/data/project/wikibot'));
      assert.partialDeepStrictEqual(initContainers, [
        { name: 'injected', securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } },
      ]);
      await isDenied(
        createPod('tool-wikibot', {}, labelled('/etc')),
        'violates the pod profile: spec.volumes[0].hostPath.path: expected an allowed path, got "/etc"',
      );
    });

    it('denies the pods of a tool whose annotation is invalid or missing, and says what is missing', async () => {
      const missing = `there are no parameters: the namespace "tool-heritage" has none of the annotations ${TOOL_UID}`;
      const invalid =
        'the parameters of the namespace "tool-heritage" are invalid: ' +
        "settingsExpression failed: type conversion error from 'string' to 'int'";
      await annotate('tool-heritage', 'root');
      await eventually(() => isDenied(createPod('tool-heritage', {}), invalid));
      await annotate('tool-heritage', null);
      await eventually(() => isDenied(createPod('tool-heritage', {}), missing));
      assert.deepEqual(await userIn('tool-wikibot'), defaults(52_503));
    });
  });

  it('enforces namespaced policies in their namespace only: one rejects, one mutates', async () => {
    const deployment = (namespace: string, replicas: number): string =>
      JSON.stringify({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'web', namespace },
        spec: {
          replicas,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ name: 'web', image: 'example.com/shop/web:1' }] },
          },
        },
      });
    const rejected = await eventually(async () => {
      const result = await started.portcullis(['apply', '-f', '-', '--dry-run'], deployment('examples', 8));
      assert.equal(result.code, 1, result.stdout);
      return result;
    });
    assert.match(rejected.stderr, /at most 5 replicas are allowed, got 8/);
    succeeded(await started.portcullis(['apply', '-f', '-'], deployment('default', 8)));
    await eventually(async () => {
      succeeded(await started.portcullis(['apply', '-f', '-', '--dry-run'], deployment('examples', 2)));
      succeeded(await started.portcullis(['apply', '-f', '-'], deployment('examples', 2)));
      const changed = succeeded(await started.portcullis(['get', 'deploy/web', '-n', 'examples', '-o', 'json']));
      assert.match(changed, /"cost-center": "examples"/);
    });
  });
});

describe('portcullis start --policies, given manifests', () => {
  it('serves nothing of another file, whose policies the same data folder has', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-files-'));
    try {
      const [first, second] = ['first', 'second'].map((name) => join(folder, `${name}.yml`));
      const rules = '{rules: [], settings: {validations: [{expression: "false"}]}, module: builtin:cel}';
      writeFileSync(first ?? '', `first: ${rules}\n`);
      writeFileSync(second ?? '', 'second: [not a policy\n');
      const dataDir = join(folder, 'data');
      for (const file of [first, second]) {
        await using started = await StartedPortcullis.start('--policies', file ?? '', '--data-dir', dataDir);
        assert.equal(/^first /m.test(started.output), file === first, started.output);
        await started.end('SIGTERM');
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('serves them by their ids in a cluster, and follows the folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-manifests-'));
    const manifest = (name: string): string =>
      readFileSync(join(ROOT, 'examples', name, 'policy.yaml'), 'utf8').replace(
        'file://./',
        `file://${join(ROOT, 'examples')}/`,
      );
    try {
      writeFileSync(join(folder, 'a.yaml'), manifest('replica-limit'));
      await using started = await StartedPortcullis.start('--policies', folder);
      assert.match(started.output, /^kw\.cap\.replica-limit +protect +Active +builtin:cel$/m);
      const [, status = ''] = /^Status +(\S+)/m.exec(started.output) ?? [];
      const page = async (): Promise<PoliciesPage> => (await (await fetch(status)).json()) as PoliciesPage;
      const served = async (): Promise<readonly string[]> =>
        (await page()).policies.filter(({ phase }) => phase === 'Active').map(({ id }) => id);
      writeFileSync(join(folder, 'b.yaml'), manifest('host-namespaces'));
      await eventually(async () => {
        assert.deepEqual(await served(), ['kw.cap.host-namespaces', 'kw.cap.replica-limit']);
      });
      writeFileSync(join(folder, 'a.yaml'), 'apiVersion: policies.kubewarden.io/v1\nkind: ClusterAdmissionPolicy\n');
      await eventually(async () => {
        assert.match((await page()).source.error ?? '', /a\.yaml:1:1 .*metadata\.name: expected a name, got none/);
      });
      assert.deepEqual(await served(), ['kw.cap.host-namespaces', 'kw.cap.replica-limit']);
      rmSync(join(folder, 'a.yaml'));
      await eventually(async () => {
        assert.deepEqual(await served(), ['kw.cap.host-namespaces']);
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('portcullis start --policies, given policies with parameters', () => {
  it('reads the parameters from the manifests, follows them, and says what is missing', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-parameters-'));
    const limits = (limit: number): string =>
      `{apiVersion: v1, kind: ConfigMap, metadata: {name: limits, namespace: shop}, data: {limit: '${limit}'}}`;
    const policy = (name: string): string => `
apiVersion: policies.kubewarden.io/v1
kind: ClusterAdmissionPolicy
metadata: {name: ${name}}
spec:
  module: builtin:cel
  mutating: false
  rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]
  settings: {}
  parameters:
    from: {resource: {apiVersion: v1, kind: ConfigMap, name: ${name}}}
    overridable: [validations]
    settingsExpression: "{'validations': [{'expression': 'object.spec.replicas <= ' + params.data.limit}]}"
`;
    try {
      writeFileSync(join(folder, 'policies.yaml'), [policy('limits'), policy('gone')].join('---'));
      writeFileSync(join(folder, 'limits.yaml'), limits(5));
      await using started = await StartedPortcullis.start('--policies', folder);
      assert.match(
        started.output,
        /cap\/gone.*parameters are not among the manifests|parameters are not among.*cap\/gone/,
      );
      assert.doesNotMatch(started.output, /parameters are not among.*cap\/limits/);
      const [, reviews = ''] = /^Reviews +(\S+)\/validate\/POLICY/m.exec(started.output) ?? [];
      const answer = async (name: string, namespace: string): Promise<string> => {
        const object = {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'web', namespace },
          spec: { replicas: 7 },
        };
        return await reviewed(`${reviews}/validate/kw.cap.${name}`, object);
      };
      assert.match(await answer('limits', 'shop'), /"allowed":false.*object\.spec\.replicas <= 5/);
      assert.match(await answer('limits', 'other'), /"allowed":false.*ConfigMap other\/limits does not exist/);
      assert.match(await answer('gone', 'shop'), /"allowed":false.*ConfigMap shop\/gone does not exist/);
      writeFileSync(join(folder, 'limits.yaml'), limits(9));
      await eventually(async () => assert.match(await answer('limits', 'shop'), /"allowed":true/));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('portcullis start --verification-path', () => {
  it('serves the signed module of the registry of the examples, and no others', async () => {
    await using started = await StartedPortcullis.start('--verification-path', 'examples/verification.yml');
    const manifests = ['required-labels', 'pod-privileged'].map((name) => `examples/${name}/policy.yaml`);
    succeeded(await started.portcullis(['apply', ...manifests.flatMap((file) => ['-f', file])]));
    const wait = (name: string, phase: string): Promise<CommandResult> =>
      started.portcullis(['wait', `cap/${name}`, '--for', `jsonpath={.status.phase}=${phase}`, '--timeout', '30s']);
    succeeded(await wait('required-labels', 'Active'));
    const history = await started.portcullis(['rollout', 'history', 'cap/required-labels', '--revision', '1']);
    assert.match(succeeded(history), /, manifest sha256:[0-9a-f]{64}, signatures verified\)$/m);
    succeeded(await wait('pod-privileged', 'Error'));
    const policy = succeeded(await started.portcullis(['get', 'cap/pod-privileged', '-o', 'json']));
    assert.equal((JSON.parse(policy) as ClusterAdmissionPolicy).status?.reason, 'NotVerifiable');
  });
});

describe('portcullis start while its ports are in use', () => {
  it('uses the next ones', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    try {
      await using started = await StartedPortcullis.start(
        ...['--port', '--cluster-port', '--operations-port'].flatMap((flag) => [flag, String(port)]),
      );
      // Other processes may have the ports that follow.
      const notes = started.output.split('\n').filter((line) => line.startsWith(`Port ${port} is in use`));
      assert.deepEqual(notes, Array(3).fill(`Port ${port} is in use, trying the next one…`));
    } finally {
      other.close();
    }
  });
});

describe('npm start', () => {
  it('prints its policies in a table that fits a terminal, and ends when a supervisor ends npm', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-npm-'));
    const ports = ['--port', '0', '--operations-port', '0', '--cluster-port', '0'];
    const npm = spawn('npm', ['start', '--', ...ports, '--data-dir', folder], {
      cwd: ROOT,
      env: { ...ENVIRONMENT, HOME: folder },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      let output = '';
      npm.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
      await eventually(async () => assert.match(output, /Ctrl-C stops/), { timeoutMs: 60_000 });
      const [table = ''] = /^POLICY .*(?:\n\S.*)*/m.exec(output) ?? [];
      assert.ok(table.split('\n').length > 10, output);
      // The usual width of a terminal.
      assert.deepEqual(
        table.split('\n').filter((line) => line.length > 80),
        [],
      );
      npm.kill('SIGTERM');
      // The pipe is closed by the last process that has it.
      await once(npm.stdout, 'close');
      assert.match(output, /\nStopping…\n$/);
    } finally {
      npm.kill('SIGTERM');
      npm.stdout.destroy();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
