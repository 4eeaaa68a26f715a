import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AccessRule, type KubernetesObject, valueAt } from '../../resources/index.ts';
import { installObjects } from '../install-objects.ts';
import { defaultValues, installValues } from '../read-values.ts';
import { AUDITOR } from './naming.ts';

const READS: ReadonlySet<string> = new Set(['get', 'list', 'watch']);

const ofAuditor = (values = defaultValues('1.0.0')): readonly KubernetesObject[] =>
  installObjects({ namespace: 'portcullis', values }).filter(({ metadata }) => metadata.name?.startsWith(AUDITOR));

describe('the auditor of an installation', () => {
  const rules = ofAuditor().flatMap((object) => (object['rules'] ?? []) as readonly AccessRule[]);

  it('reads no Secrets, and nothing by a wildcard', () => {
    assert.ok(rules.length > 10);
    const texts = rules.flatMap(({ apiGroups, resources, verbs }) => [...apiGroups, ...resources, ...verbs]);
    assert.deepEqual(
      texts.filter((text) => text.includes('*') || text === 'secrets'),
      [],
    );
  });

  it('writes statuses of policies and revisions, reports and its Lease, and nothing else', () => {
    const written = rules
      .filter(({ verbs }) => verbs.some((verb) => !READS.has(verb)))
      .flatMap(({ resources }) => resources)
      .filter((resource) => !resource.endsWith('reports'));
    assert.deepEqual(written.toSorted(), [
      'admissionpolicies/status',
      'admissionpolicygroups/status',
      'clusteradmissionpolicies/status',
      'clusteradmissionpolicygroups/status',
      'leases',
      'policyexceptions/status',
      'policyrevisions/status',
    ]);
  });

  it('is given one Secret, with credentials for registries, and needs none', () => {
    const values = installValues({ auditor: { imagePullSecret: 'regcred' } }, '1.0.0', 'test');
    const deployment = ofAuditor(values).find(({ kind }) => kind === 'Deployment');
    const secrets = valueAt(deployment, 'spec', 'template', 'spec', 'volumes');
    assert.deepEqual(Array.isArray(secrets) ? secrets.flatMap((volume) => valueAt(volume, 'secret') ?? []) : [], [
      { secretName: 'regcred', items: [{ key: '.dockerconfigjson', path: 'config.json' }], optional: true },
    ]);
    assert.match(JSON.stringify(deployment), /"--docker-config-json-path=\/etc\/portcullis\/docker\/config.json"/);
    assert.match(JSON.stringify(deployment), /"mountPath":"\/etc\/portcullis\/docker","readOnly":true/);
  });

  it('is left out by a value, which the controller is told', () => {
    const values = installValues({ auditor: { enabled: false } }, '1.0.0', 'test');
    assert.deepEqual(
      ofAuditor(values).map(({ kind }) => kind),
      ['NetworkPolicy'],
    );
    const [controller] = installObjects({ namespace: 'portcullis', values }).filter(
      ({ kind }) => kind === 'Deployment',
    );
    assert.match(JSON.stringify(controller), /"--auditor=false"/);
  });
});
