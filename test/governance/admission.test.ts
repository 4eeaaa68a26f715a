// What `portcullis apply` says about governance policies, through the webhook of the controller on an embedded cluster.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { ensureLocalCertificates } from '../../src/control/certificates/index.ts';
import { OwnKindsWebhook } from '../../src/lifecycle/index.ts';
import { type JsonObject, POLICIES } from '../../src/resources/index.ts';
import { SharedCaches } from '../../src/runtime/index.ts';
import { policyOfChecks } from './governance-lab.ts';
import { ServedLab } from './served-lab.ts';

const dependsOn = (name: string): JsonObject => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  name,
  compliance: 'Compliant',
});

describe('applying governance policies', () => {
  let served: ServedLab;
  let folder: string;
  let stop: () => Promise<void>;

  before(async () => {
    served = await ServedLab.start('controller');
    folder = await mkdtemp(join(tmpdir(), 'portcullis-governance-admission-'));
    const tls = await ensureLocalCertificates(join(folder, 'pki'));
    const cluster = served.lab.cluster.admin;
    const log = pino({ level: 'silent' });
    const caches = new SharedCaches({ cluster, log });
    const webhook = new OwnKindsWebhook({
      cluster,
      caches,
      namespace: 'portcullis',
      host: '127.0.0.1',
      port: 0,
      apiServers: ['127.0.0.1'],
      tls,
      ca: await readFile(tls.caFile, 'utf8'),
      // Writes of the administrator are checked, too.
      controllerUser: 'controller',
      contributed: [served.lab.reviews],
      log,
    });
    const aborting = new AbortController();
    const running = [webhook.registration, caches, webhook].map((part) => part.start(aborting.signal));
    stop = async () => {
      aborting.abort();
      await Promise.all(running);
    };
    await Promise.all([webhook.ready, webhook.registration.ready]);
  });
  after(async () => {
    await stop();
    await served[Symbol.asyncDispose]();
    await rm(folder, { recursive: true, force: true });
  });

  async function apply(object: JsonObject): ReturnType<ServedLab['run']> {
    const file = join(folder, 'object.json');
    await writeFile(file, JSON.stringify(object));
    return await served.run('admin', 'apply', '-f', file);
  }

  it('warns of a typo in a dependency, and applies the Policy', async () => {
    await served.lab.apply(policyOfChecks('kafka-operator', ['operator']));
    const policy = policyOfChecks('kafka', ['cluster'], { spec: { dependencies: [dependsOn('kafka-operatr')] } });
    const { code, stderr } = await apply(policy);
    assert.equal(code, 0, stderr);
    assert.equal(
      stderr,
      'Warning: spec.dependencies[0].name: Policy policies.kafka-operatr does not exist yet: it is waited for; did you mean kafka-operator? [dependency-not-found]\n',
    );
    const page = await readFile(join(import.meta.dirname, '../../docs/governance.md'), 'utf8');
    assert.ok(page.includes(stderr), 'the documentation shows this warning');
    await served.lab.reaches('policies/kafka', 'Pending');
  });

  it('refuses what Open Cluster Management refuses', async () => {
    const objectDefinition = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name: 'unset' },
      spec: { 'object-templates': [] },
    };
    const policy = policyOfChecks('unset', [], { spec: {} });
    const { code, stderr } = await apply({
      ...policy,
      spec: { disabled: false, 'policy-templates': [{ objectDefinition }] },
    });
    assert.equal(code, 1);
    assert.match(stderr, /RemediationAction field of the policy and policy template cannot both be unset/);
    await assert.rejects(served.lab.cluster.admin.get(POLICIES, { namespace: 'policies', name: 'unset' }));
  });

  it('works without the controller', async () => {
    await stop();
    const { code, stderr } = await apply(policyOfChecks('self', [], { spec: { dependencies: [dependsOn('self')] } }));
    assert.equal(code, 0, stderr);
  });
});
