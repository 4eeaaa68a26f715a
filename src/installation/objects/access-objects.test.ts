import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AccessRule, KubernetesObject } from '../../resources/index.ts';
import { installObjects } from '../install-objects.ts';
import { installValues } from '../read-values.ts';
import { CONTROLLER } from './naming.ts';

/** The controller's rights on Secrets, and the number of its Roles. */
function rightsOnSecrets(mode: 'own' | 'external'): { readonly verbs: readonly string[]; readonly roles: number } {
  const values = installValues({ certificates: { mode } }, '1.0.0', 'values.yaml');
  const objects = installObjects({ namespace: 'portcullis', values });
  const rules = objects.flatMap((object) => (object['rules'] ?? []) as readonly AccessRule[]);
  const verbs = rules.filter(({ resources }) => resources.includes('secrets')).flatMap((rule) => rule.verbs);
  return {
    verbs: verbs.toSorted(),
    roles: objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === CONTROLLER).length,
  };
}

describe('rights of the controller', () => {
  it('include writing Secrets when it manages the certificates, and only reading them otherwise', () => {
    assert.deepEqual(rightsOnSecrets('own'), {
      verbs: ['create', 'delete', 'get', 'list', 'update', 'watch'],
      roles: 1,
    });
    assert.deepEqual(rightsOnSecrets('external'), { verbs: ['get', 'list', 'watch'], roles: 1 });
  });
});

describe('a user who may view', () => {
  it('may read policies, exceptions from them, and what they found', () => {
    const objects = installObjects({ namespace: 'portcullis', values: installValues({}, '1.0.0', 'values.yaml') });
    const view = objects.find(({ metadata }) => metadata.name === 'portcullis-view');
    const rules = view?.['rules'] as readonly AccessRule[];
    const readable = rules.flatMap(({ resources }) => resources);
    for (const resource of ['admissionpolicies', 'policyexceptions', 'reports', 'clusterreports']) {
      assert.ok(readable.includes(resource), resource);
    }
  });
});

describe('the right to write policies of a namespace', () => {
  it('is part of edit and admin only if the value says so', () => {
    for (const given of [{}, { userRoles: { aggregateWrite: false } }, { userRoles: { aggregateWrite: true } }]) {
      const values = installValues(given, '1.0.0', 'values.yaml');
      const objects = installObjects({ namespace: 'portcullis', values });
      const rulesOf = ({ rules }: KubernetesObject): readonly AccessRule[] => (rules ?? []) as readonly AccessRule[];
      const writers = objects.filter(
        (object) =>
          Object.entries(object.metadata.labels ?? {}).some(
            ([name, value]) => name.startsWith('rbac.authorization.k8s.io/aggregate-to-') && value === 'true',
          ) && rulesOf(object).some(({ verbs }) => verbs.some((verb) => !['get', 'list', 'watch'].includes(verb))),
      );
      const expected = values.userRoles.aggregateWrite ? ['portcullis-edit'] : [];
      assert.deepEqual(
        writers.map(({ metadata }) => metadata.name),
        expected,
      );
    }
  });
});
