// The mission's second example: a Job that refreshes a certificate, and is pruned afterwards. The test stands in for the Job.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { HOUR, NOW, pem, secret } from '../../src/governance/certificates/testing/certificate-scene.ts';
import type { KubernetesObject } from '../../src/resources/index.ts';
import { until } from '../server/harness.ts';
import { GovernanceLab, type LabObject } from './governance-lab.ts';

const EXAMPLE = readFileSync(new URL('../../examples/governance/certificate-refresh.yaml', import.meta.url), 'utf8');
const ROOT = 'policies/certificate-refresh';
const COPY = 'local-cluster/policies.certificate-refresh';
const JOB = { apiVersion: 'batch/v1', kind: 'Job', name: 'shop/certificate-refresh' };
const REFRESH = { kind: 'ConfigurationPolicy', name: 'local-cluster/certificate-refresh' };
const WAITS = 'Dependencies were not satisfied: 1 is still pending (CertificatePolicy certificate-expiry)';

/** The Secret with a certificate that is valid for some hours. */
async function certificate(hours: number): Promise<KubernetesObject> {
  const present = (Date.now() - NOW) / HOUR;
  const { metadata, ...rest } = secret('web', await pem({ from: present - 1, until: present + hours }));
  return { ...rest, metadata: { ...metadata, namespace: 'shop' } };
}

/** Name, state, compliance and newest message of each template. */
async function templates(lab: GovernanceLab): Promise<readonly unknown[]> {
  const copy = await lab.policy(COPY);
  return (copy?.status?.details ?? []).map(({ templateMeta, state, compliant, history }) => [
    templateMeta?.name,
    state,
    compliant,
    history?.[0]?.message?.trim(),
  ]);
}

/** Waits until the templates are as expected. */
async function reachesTemplates(lab: GovernanceLab, expected: readonly unknown[]): Promise<void> {
  let last: readonly unknown[] = [];
  await until(
    async () => isDeepStrictEqual((last = await templates(lab)), expected),
    () => `templates ${JSON.stringify(expected)}, last ${JSON.stringify(last)}`,
  );
}

describe('a certificate that a Job refreshes', () => {
  it('creates the Job when the certificate expires soon, and prunes it when the certificate is fine again', async () => {
    await using lab = await GovernanceLab.start();
    await lab.namespace('shop');
    await lab.apply(await certificate(1_000), EXAMPLE);

    const fine = await lab.reaches(ROOT, 'Compliant');
    const unneeded = [
      ['certificate-expiry', 'Applied', 'Compliant', 'Compliant; All evaluated certificates are compliant'],
      ['certificate-refresh', 'Waiting', 'Compliant', `Compliant; ${WAITS} but ignorePending is true`],
    ];
    await reachesTemplates(lab, unneeded);
    const waits = 'CertificatePolicy certificate-expiry, which is Compliant and must be NonCompliant';
    assert.deepEqual(fine.status?.pending, [{ template: 'certificate-refresh', reason: 'Mismatch', message: waits }]);
    assert.equal(await lab.get(JOB), undefined);
    assert.equal(await lab.get(REFRESH), undefined);

    await lab.apply(await certificate(200));
    await lab.appears(JOB);
    const expiring = '1 certificates expire in less than 300h0m0s: shop:web';
    await reachesTemplates(lab, [
      ['certificate-expiry', 'Applied', 'NonCompliant', `NonCompliant; ${expiring}`],
      [
        'certificate-refresh',
        'Applied',
        'Compliant',
        'Compliant; notification - jobs [certificate-refresh] found as specified in namespace shop',
      ],
    ]);
    const root = await lab.reaches(ROOT, 'NonCompliant');
    assert.equal(root.status?.message?.trim(), `certificate-expiry: ${expiring}`);

    await lab.apply(await certificate(1_000));
    await lab.disappears(JOB);
    await lab.disappears(REFRESH);
    await lab.reaches(ROOT, 'Compliant');
    await reachesTemplates(lab, [unneeded[0], ['certificate-refresh', 'Removed', ...(unneeded[1]?.slice(2) ?? [])]]);
    const announced = (await lab.events('TemplateRemoving')).map(({ note, message }) => note ?? message);
    assert.deepEqual(announced, [
      `certificate-refresh is deleted, because a dependency is no longer met: Compliant; ${WAITS} but ignorePending is true; pruneObjectBehavior DeleteAll: Job certificate-refresh`,
    ]);
  });

  it('announces by status that the Job is going to be deleted, while a finalizer holds it', async () => {
    await using lab = await GovernanceLab.start();
    await lab.namespace('shop');
    await lab.apply(await certificate(200), EXAMPLE);
    await lab.appears(JOB);
    await lab.merge(JOB, { metadata: { finalizers: ['lab.example.com/hold'] } });

    await lab.apply(await certificate(1_000));
    const held = (object: LabObject | undefined): boolean => object?.status?.compliant === 'Terminating';
    await lab.sees(REFRESH, held);
    const [, refresh] = (await lab.policy(COPY))?.status?.details ?? [];
    assert.equal(refresh?.state, 'Removing');

    await lab.merge(JOB, { metadata: { finalizers: null } });
    await lab.disappears(REFRESH);
    await lab.reaches(ROOT, 'Compliant');
  });
});
