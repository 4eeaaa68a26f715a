// `portcullis controller --manage-policy-servers` as a process, with the rights of an installation whose certificates another
// program manages.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { EmbeddedCluster, Gateway, writeKubeconfig } from '../../src/apiserver/index.ts';
import { installObjects } from '../../src/installation/install-objects.ts';
import { installValues } from '../../src/installation/read-values.ts';
import { applyObject } from '../../src/cli/start/local-cluster.ts';
import { CONTROLLER_USER } from '../../src/cli/start/access.ts';
import { unlessGone } from '../../src/cluster/index.ts';
import { wantedCertificates } from '../../src/lifecycle/index.ts';
import {
  type JsonObject,
  kubernetesKind,
  type KubernetesObject,
  POLICY_SERVERS,
  type ResourceType,
} from '../../src/resources/index.ts';
import { type CertifiedKey, createAuthority, issueCertificate } from '../../src/https/index.ts';
import { ensureLocalCertificates } from '../../src/control/index.ts';
import { freePorts } from '../cluster/free-ports.ts';
import { LoggingProcess } from './logging-process.ts';

const NAMESPACE = 'portcullis';
const DAY_MS = 24 * 3_600_000;
/** The objects of an installation without its pods. */
const KINDS: ReadonlySet<string> = new Set([
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'Namespace',
  'Role',
  'RoleBinding',
  'ServiceAccount',
]);
const [WEBHOOK, CONTROL] = ['portcullis-controller-webhook', 'portcullis-controller-control'] as const;
/** The service account of the policy server. */
const ACCOUNT = 'policies';
const ACCOUNT_USER = `system:serviceaccount:${NAMESPACE}:${ACCOUNT}`;

const flagged = (flags: object): string[] =>
  Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)]);

function typeOf(apiVersion: string, kind: string): ResourceType {
  return kubernetesKind(apiVersion, kind) ?? assert.fail(`no kind ${kind}`);
}

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) {
      return found;
    }
    await sleep(20);
  }
}

describe('a controller that manages policy servers, with external certificates', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-managed-'));
  let cluster: EmbeddedCluster;
  let gateway: Gateway;
  let authority: CertifiedKey;
  const certified = new Map<string, CertifiedKey>();
  before(async () => {
    const groups = ['system:serviceaccounts', `system:serviceaccounts:${NAMESPACE}`, 'system:authenticated'];
    cluster = await EmbeddedCluster.open({
      tokens: [
        { token: 'controller', user: CONTROLLER_USER },
        { token: 'server', user: { username: ACCOUNT_USER, groups } },
      ],
    });
    const values = installValues({ certificates: { mode: 'external' } }, '0.1.0', 'values');
    for (const object of installObjects({ namespace: NAMESPACE, values }).filter(({ kind }) => KINDS.has(kind))) {
      await applyObject(cluster, object);
    }
    const validity = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
    authority = await createAuthority({ commonName: 'CA', ...validity });
    for (const { secret, dnsNames, usages } of wantedCertificates(NAMESPACE, ['default'])) {
      const issued = await issueCertificate(authority, { commonName: secret, dnsNames, usages, ...validity });
      certified.set(secret, issued);
      await put(secret, issued);
    }
    const { caFile, certFile, keyFile } = await ensureLocalCertificates(join(folder, 'pki'));
    const [ca, cert, key] = [caFile, certFile, keyFile].map((file) => readFileSync(file, 'utf8'));
    gateway = new Gateway({
      cluster,
      authenticator: cluster.authenticator,
      tls: { cert: cert ?? '', key: key ?? '' },
    });
    const { url } = await gateway.start({ port: 0 });
    for (const token of ['controller', 'server']) {
      await writeKubeconfig(join(folder, token), { server: url, ca: ca ?? '', token });
    }
  });
  after(async () => {
    await gateway.stop();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  /** Writes the Secret of a certificate. */
  const put = async (name: string, { cert, key }: CertifiedKey): Promise<void> => {
    const texts = Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
    const data = Object.fromEntries(texts.map(([file, text]) => [file, Buffer.from(text).toString('base64')]));
    const metadata = { name, namespace: NAMESPACE };
    await applyObject(cluster, { apiVersion: 'v1', kind: 'Secret', type: 'kubernetes.io/tls', metadata, data });
  };
  const good = (name: string): CertifiedKey => certified.get(name) ?? assert.fail(name);
  const controllerWith = (flags: object): LoggingProcess =>
    new LoggingProcess([
      'controller',
      '--manage-policy-servers',
      ...flagged({
        kubeconfig: join(folder, 'controller'),
        'policy-server-image': 'portcullis:0.1.0',
        certificates: 'external',
        ...flags,
      }),
    ]);
  const find = (apiVersion: string, kind: string, name: string): Promise<KubernetesObject | undefined> => {
    const type = typeOf(apiVersion, kind);
    return unlessGone(cluster.admin.get(type, type.namespaced ? { namespace: NAMESPACE, name } : { name }));
  };

  it('reports an unusable Secret, is live but not ready, and continues when the Secret is corrected', async () => {
    await put(WEBHOOK, { cert: good(WEBHOOK).cert, key: good(CONTROL).key });
    const [port = 0] = await freePorts(1);
    await using controller = controllerWith({
      'certificates-dir': join(folder, 'certificates'),
      'webhook-addr': '127.0.0.1',
      'webhook-port': 0,
      'operations-port': port,
    });
    const { secret, reason } = await controller.says('the Secret is unusable; its files stay as they are');
    assert.equal(secret, WEBHOOK);
    assert.match(String(reason), /the key in tls\.key does not belong to the certificate/);
    const asked = async (path: string): Promise<string> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      return `${answer.status} ${await answer.text()}`;
    };
    const current = (name: string, value: number): RegExp =>
      new RegExp(`^portcullis_certificate_files_current\\{secret="${name}"\\} ${value}$`, 'm');
    assert.equal(await asked('/livez'), '200 ok\n');
    assert.match(await asked('/readyz'), /^503 not ready: .*files of secret portcullis-controller-webhook/);
    assert.match(await asked('/metrics'), current(WEBHOOK, 0));
    await until(async () => (current(CONTROL, 1).test(await asked('/metrics')) ? true : undefined));

    await put(WEBHOOK, good(WEBHOOK));
    await controller.says('controller ready');
    assert.equal(await asked('/readyz'), '200 ok\n');
    assert.match(await asked('/metrics'), current(WEBHOOK, 1));
    await controller.says('leading');
    controller.signal('SIGTERM');
    await controller.says('stopped');
    assert.equal(await controller.ended(), 0);
  });

  it('lets policy servers listen on the given address, and exempts their service account from policies', async () => {
    // The configuration of the test before, whose policy server has ended.
    const validating = typeOf('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration');
    await unlessGone(cluster.admin.delete(validating, { name: 'portcullis-own-kinds' }));
    await using controller = controllerWith({ 'operations-port': 0, 'policy-server-addr': '::' });
    await applyObject(cluster, {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'PolicyServer',
      metadata: { name: 'default' },
      spec: { image: 'portcullis:0.1.0', replicas: 1, serviceAccountName: ACCOUNT },
    });
    const deployment = await until(() => find('apps/v1', 'Deployment', 'policy-server-default'));
    assert.match(JSON.stringify(deployment), /"--addr=::".*"--control-addr=::"/);

    // The process of the pod, with the rights that the controller granted to the account.
    const { cert, key } = good('policy-server-default-control');
    const files = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert };
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(folder, name), text);
    }
    const [certFile, keyFile, caFile] = Object.keys(files).map((name) => join(folder, name));
    const pod = await cluster.admin.create(typeOf('v1', 'Pod'), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'one', namespace: NAMESPACE },
      spec: { containers: [{ name: 'policy-server', image: 'portcullis:0.1.0' }] },
    });
    await using server = new LoggingProcess(
      [
        'serve',
        ...flagged({
          'policy-server': 'default',
          kubeconfig: join(folder, 'server'),
          addr: '127.0.0.1',
          port: 0,
          'readiness-probe-port': 0,
          'cert-file': certFile,
          'key-file': keyFile,
          'policies-download-dir': join(folder, 'data'),
          'control-addr': '127.0.0.1',
          'control-port': 0,
          'control-cert-file': certFile,
          'control-key-file': keyFile,
          'control-ca-file': caFile,
        }),
      ],
      { POD_NAME: 'one', POD_UID: pod.metadata.uid ?? '' },
    );
    await server.says('policy server ready');
    // API servers call a policy server only after Kubernetes reports its pod as ready.
    const running = { type: 'merge', body: { status: { replicas: 1, availableReplicas: 1 } } } as const;
    const its = { namespace: NAMESPACE, name: 'policy-server-default' };
    await cluster.admin.patch(typeOf('apps/v1', 'Deployment'), its, running, { subresource: 'status' });
    const refuse = async (apiGroup: string, resource: string): Promise<void> => {
      const rule = { apiGroups: [apiGroup], apiVersions: ['v1'], resources: [resource], operations: ['*'] };
      await applyObject(cluster, {
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        // One webhook for each policy.
        metadata: { name: `no-${resource}`, annotations: { 'portcullis.dev/webhook': 'Own' } },
        spec: {
          module: 'builtin:cel',
          settings: { validations: [{ expression: 'false' }] },
          mutating: false,
          rules: [rule],
        },
      });
    };
    // Portcullis writes events in all namespaces, and Leases only in its own.
    await refuse('', 'events');
    await refuse('coordination.k8s.io', 'leases');
    const webhook = async (name: string): Promise<JsonObject | undefined> => {
      const found = await find(
        'admissionregistration.k8s.io/v1',
        'ValidatingWebhookConfiguration',
        'portcullis-default',
      );
      return ((found?.['webhooks'] ?? []) as readonly JsonObject[]).find(
        (one) => one['name'] === `kw.cap.${name}.portcullis.dev`,
      );
    };
    const exempt = async (): Promise<string | undefined> => {
      const conditions = ((await webhook('no-events'))?.['matchConditions'] ?? []) as unknown as readonly {
        name: string;
        expression: string;
      }[];
      return conditions.find(({ name }) => name === 'portcullis.dev/exempt-identities')?.expression;
    };
    const isExempt = async (): Promise<boolean | undefined> => (await exempt())?.includes(`"${ACCOUNT_USER}"`);
    assert.equal(await until(isExempt), true);
    assert.equal((await until(() => webhook('no-leases')))['matchConditions'], undefined);
    const body = { spec: { serviceAccountName: null } };
    await cluster.admin.patch(POLICY_SERVERS, { name: 'default' }, { type: 'merge', body });
    await until(async () => ((await isExempt()) === false ? true : undefined));
    // The controller has written no Secrets, because it may not.
    const { items } = await cluster.admin.list(typeOf('v1', 'Secret'), { namespace: NAMESPACE });
    assert.deepEqual(new Set(items.map(({ metadata }) => metadata.name)), new Set(certified.keys()));
    assert.ok(items.every(({ metadata }) => metadata.labels === undefined));
    controller.signal('SIGTERM');
    await controller.says('stopped');
    assert.equal(await controller.ended(), 0);
  });
});
