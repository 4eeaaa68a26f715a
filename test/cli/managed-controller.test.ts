// `portcullis controller --manage-policy-servers` as a process, with the rights of an installation whose certificates another
// program manages.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { applyObject } from '../../src/cli/start/apply-object.ts';
import { unlessGone } from '../../src/cluster/index.ts';
import { type CertifiedKey, createAuthority, issueCertificate } from '../../src/https/index.ts';
import { wantedCertificates } from '../../src/lifecycle/index.ts';
import { type JsonObject, POLICY_SERVERS } from '../../src/resources/index.ts';
import { freePorts } from '../cluster/free-ports.ts';
import { ACCOUNT_USER, ManagedInstallation, NAMESPACE, OWN_ADDRESS, typeOf, until } from './managed-installation.ts';

const DAY_MS = 24 * 3_600_000;
const [WEBHOOK, CONTROL] = ['portcullis-controller-webhook', 'portcullis-controller-control'] as const;

describe('a controller that manages policy servers, with external certificates', () => {
  let installation: ManagedInstallation;
  let authority: CertifiedKey;
  const certified = new Map<string, CertifiedKey>();
  before(async () => {
    installation = await ManagedInstallation.open('external');
    const validity = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) };
    authority = await createAuthority({ commonName: 'CA', ...validity });
    for (const { secret, dnsNames, usages } of wantedCertificates(NAMESPACE, ['default'])) {
      const issued = await issueCertificate(authority, { commonName: secret, dnsNames, usages, ...validity });
      certified.set(secret, issued);
      await put(secret, issued);
    }
  });
  after(() => installation[Symbol.asyncDispose]());

  /** Writes the Secret of a certificate. */
  const put = async (name: string, { cert, key }: CertifiedKey): Promise<void> => {
    const texts = Object.entries({ 'tls.crt': cert, 'tls.key': key, 'ca.crt': authority.cert });
    const data = Object.fromEntries(texts.map(([file, text]) => [file, Buffer.from(text).toString('base64')]));
    const metadata = { name, namespace: NAMESPACE };
    await applyObject(installation.cluster, {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/tls',
      metadata,
      data,
    });
  };
  const good = (name: string): CertifiedKey => certified.get(name) ?? assert.fail(name);

  it('reports an unusable Secret, is live but not ready, and continues when the Secret is corrected', async () => {
    await put(WEBHOOK, { cert: good(WEBHOOK).cert, key: good(CONTROL).key });
    const [port = 0] = await freePorts(1);
    await using controller = installation.controller({
      'certificates-dir': join(installation.folder, 'certificates'),
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
    await unlessGone(installation.cluster.admin.delete(validating, { name: 'portcullis-own-kinds' }));
    await installation.addPolicyServer();
    await using controller = installation.controller({ 'operations-port': 0, 'policy-server-addr': OWN_ADDRESS });
    await using server = await installation.pod(await installation.deployment());
    const { admission } = await server.says('policy server ready');
    assert.match(String(admission), new RegExp(`^https://${OWN_ADDRESS}:8443`));
    // API servers call a policy server only after Kubernetes reports its pod as ready.
    const running = { type: 'merge', body: { status: { replicas: 1, availableReplicas: 1 } } } as const;
    const its = { namespace: NAMESPACE, name: 'policy-server-default' };
    await installation.cluster.admin.patch(typeOf('apps/v1', 'Deployment'), its, running, { subresource: 'status' });
    const refuse = async (apiGroup: string, resource: string): Promise<void> => {
      const rule = { apiGroups: [apiGroup], apiVersions: ['v1'], resources: [resource], operations: ['*'] };
      await applyObject(installation.cluster, {
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
      const found = await installation.find(
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
    await installation.cluster.admin.patch(POLICY_SERVERS, { name: 'default' }, { type: 'merge', body });
    await until(async () => ((await isExempt()) === false ? true : undefined));
    // The controller has written no Secrets, because it may not.
    const { items } = await installation.cluster.admin.list(typeOf('v1', 'Secret'), { namespace: NAMESPACE });
    assert.deepEqual(new Set(items.map(({ metadata }) => metadata.name)), new Set(certified.keys()));
    assert.ok(items.every(({ metadata }) => metadata.labels === undefined));
    controller.signal('SIGTERM');
    await controller.says('stopped');
    assert.equal(await controller.ended(), 0);
  });
});
