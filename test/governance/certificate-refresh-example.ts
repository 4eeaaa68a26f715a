// The mission's second example: a Job that refreshes a certificate, and is pruned afterwards. No node runs the Job, so the scenario
// does what its container and cert-manager would do.
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { HOUR, NOW, pem, secret } from '../../src/governance/certificates/testing/certificate-scene.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { type ExampleCluster, governanceExample, showsPolicies, showsTable } from './example-cluster.ts';
import type { LabObject, LabObjects } from './lab-objects.ts';

const COPY = 'local-cluster/policies.certificate-refresh';
const JOB = { apiVersion: 'batch/v1', kind: 'Job', name: 'shop/certificate-refresh' };
const REFRESH = { kind: 'ConfigurationPolicy', name: 'local-cluster/certificate-refresh' };
const PENDING = 'Dependencies were not satisfied: 1 is still pending (CertificatePolicy certificate-expiry)';
const WAITS = 'CertificatePolicy certificate-expiry, which is Compliant and must be NonCompliant';
const EXPIRING = '1 certificates expire in less than 300h0m0s: shop:web';
/** Hours for which a certificate is fine, and for which it is not. */
const FINE = 1_000;
const SHORT = 200;

/** What users see while the certificate is fine, and while it is not. */
const UNNEEDED = ['certificate-refresh', '', 'Compliant', `certificate-refresh waits for ${WAITS}`] as const;
const NEEDED = ['certificate-refresh', '', 'NonCompliant', `certificate-expiry: ${EXPIRING}`] as const;
/** What users see while the Job is not gone. */
const HELD = [
  'certificate-refresh',
  '',
  'Compliant',
  'certificate-refresh is being removed: Failed to delete objects: batch/v1, Kind=Job "certificate-refresh" in namespace shop (it is being deleted)',
] as const;
const JOB_HEAD = ['NAME', 'STATUS', 'COMPLETIONS'];

/** Creates the Job when the certificate expires soon, and prunes it when the certificate is fine again. */
export async function certificateRefreshed({ objects, kubectl }: ExampleCluster): Promise<void> {
  await kubectl(['apply', '--server-side', '-f', '-'], governanceExample('certificate-refresh'));
  await objects.apply(await certificate(FINE));
  await showsPolicies(kubectl, UNNEEDED);
  const expiry = ['certificate-expiry', 'Applied', 'Compliant', 'Compliant; All evaluated certificates are compliant'];
  const refresh = ['Compliant', `Compliant; ${PENDING} but ignorePending is true`];
  await reachesTemplates(objects, [expiry, ['certificate-refresh', 'Waiting', ...refresh]]);
  const { status } = await objects.reaches('policies/certificate-refresh', 'Compliant');
  assert.deepEqual(status?.pending, [{ template: 'certificate-refresh', reason: 'Mismatch', message: WAITS }]);
  assert.deepEqual([await objects.get(JOB), await objects.get(REFRESH)], [undefined, undefined]);

  await objects.apply(await certificate(SHORT));
  await objects.appears(JOB);
  await showsPolicies(kubectl, NEEDED);
  await showsTable(kubectl, ['jobs', '-n', 'shop'], [JOB_HEAD, ['certificate-refresh', 'Running', '0/1']]);
  const found = 'Compliant; notification - jobs [certificate-refresh] found as specified in namespace shop';
  await reachesTemplates(objects, [
    ['certificate-expiry', 'Applied', 'NonCompliant', `NonCompliant; ${EXPIRING}`],
    ['certificate-refresh', 'Applied', 'Compliant', found],
  ]);

  await runJob(objects);
  await showsTable(kubectl, ['jobs', '-n', 'shop'], [JOB_HEAD, ['certificate-refresh', 'Complete', '1/1']]);
  await showsPolicies(kubectl, NEEDED);

  await objects.apply(await certificate(FINE));
  await objects.disappears(JOB);
  await objects.disappears(REFRESH);
  await showsPolicies(kubectl, UNNEEDED);
  await reachesTemplates(objects, [expiry, ['certificate-refresh', 'Removed', ...refresh]]);
  const announced = (await objects.events('TemplateRemoving')).map(({ note, message }) => note ?? message);
  assert.deepEqual(announced, [
    `certificate-refresh is deleted, because a dependency is no longer met: Compliant; ${PENDING} but ignorePending is true; pruneObjectBehavior DeleteAll: Job certificate-refresh`,
  ]);
}

/** Says in the status that the Job is going to be deleted, while a finalizer holds it. Continues {@link certificateRefreshed}. */
export async function jobHeld({ objects, kubectl }: ExampleCluster): Promise<void> {
  await objects.apply(await certificate(SHORT));
  await objects.appears(JOB);
  await objects.merge(JOB, { metadata: { finalizers: ['lab.example.com/hold'] } });

  await objects.apply(await certificate(FINE));
  await objects.sees(REFRESH, (object: LabObject | undefined) => object?.status?.compliant === 'Terminating');
  const [, refresh] = (await objects.policy(COPY))?.status?.details ?? [];
  assert.equal(refresh?.state, 'Removing');
  await showsPolicies(kubectl, HELD);

  await objects.merge(JOB, { metadata: { finalizers: null } });
  await objects.disappears(REFRESH);
  await showsPolicies(kubectl, UNNEEDED);
}

/** Stands in for the kubelet and the Job controller: the Job has asked cert-manager for a certificate, and is complete. */
async function runJob(objects: LabObjects): Promise<void> {
  const [startTime, completionTime] = [-1_000, 0].map(
    (ms) => `${new Date(Date.now() + ms).toISOString().slice(0, 19)}Z`,
  );
  const condition = { status: 'True', reason: 'CompletionsReached', lastTransitionTime: completionTime ?? '' };
  await objects.setStatus(JOB, {
    startTime: startTime ?? '',
    completionTime: completionTime ?? '',
    succeeded: 1,
    conditions: [
      { type: 'SuccessCriteriaMet', ...condition },
      { type: 'Complete', ...condition },
    ],
  });
}

/** Stands in for cert-manager: the Secret with a certificate that is valid for some hours. */
async function certificate(hours: number): Promise<KubernetesObject> {
  const present = (Date.now() - NOW) / HOUR;
  const { metadata, ...rest } = secret('web', await pem({ from: present - 1, until: present + hours }));
  return { ...rest, metadata: { ...metadata, namespace: 'shop' } };
}

/** Waits until name, state, compliance and newest message of each template are as expected. */
async function reachesTemplates(objects: LabObjects, expected: readonly unknown[]): Promise<void> {
  let last: readonly unknown[] = [];
  await until(
    async () => isDeepStrictEqual((last = await templates(objects)), expected),
    () => `templates ${JSON.stringify(expected)}, last ${JSON.stringify(last)}`,
  );
}

async function templates(objects: LabObjects): Promise<readonly unknown[]> {
  const copy = await objects.policy(COPY);
  return (copy?.status?.details ?? []).map(({ templateMeta, state, compliant, history }) => [
    templateMeta?.name,
    state,
    compliant,
    history?.[0]?.message?.trim(),
  ]);
}
