// deploy/manifests/portcullis.yaml as a security reviewer reads it.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { loadAll } from 'js-yaml';
import type { AccessRule, KubernetesObject } from '../../resources/index.ts';
import { chosenParts, commentedObjects, installObjects } from '../install-objects.ts';
import { installValues } from '../read-values.ts';
import { COMMENT } from './comments.ts';

const MANIFESTS = new URL('../../../deploy/manifests/portcullis.yaml', import.meta.url);
const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection', '*']);
const MODES = ['own', 'external'] as const;

const valuesOf = (mode: string): ReturnType<typeof installValues> =>
  installValues({ certificates: { mode } }, '1.0.0', 'values.yaml');
const nameOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.name}`;
const rulesOf = (object: KubernetesObject): readonly AccessRule[] => (object['rules'] ?? []) as readonly AccessRule[];

/** Paths of empty texts, lists and objects. Elements of lists, such as the core API group, are values. */
function emptyFields(value: object, path = ''): readonly string[] {
  return Object.entries(value).flatMap(([name, field]: [string, unknown]) => {
    const at = `${path}.${name}`;
    if (typeof field === 'object' && field !== null) {
      return Object.keys(field).length === 0 ? [at] : emptyFields(field, at);
    }
    return field === '' && !Array.isArray(value) ? [at] : [];
  });
}

describe('the manifests', () => {
  it('have each right of a role in one rule, with each verb once', () => {
    for (const mode of MODES) {
      for (const object of installObjects({ namespace: 'portcullis', values: valuesOf(mode) })) {
        const rights = rulesOf(object).flatMap(({ apiGroups, resources }) =>
          apiGroups.flatMap((group) => resources.map((resource) => `${resource}.${group}`)),
        );
        assert.deepEqual(rights, [...new Set(rights)], nameOf(object));
        for (const { verbs } of rulesOf(object)) {
          assert.deepEqual(verbs, [...new Set(verbs)], nameOf(object));
        }
      }
    }
  });

  it('say of each right of the controller to write why it has it', () => {
    for (const mode of MODES) {
      const context = { namespace: 'portcullis', values: valuesOf(mode) };
      const objects = commentedObjects(context);
      const roles = objects.filter(
        ({ metadata, ...object }) => metadata.name?.startsWith('portcullis-controller') === true && 'rules' in object,
      );
      assert.deepEqual(roles.map(({ kind }) => kind).toSorted(), [
        ...Array<string>(3).fill('ClusterRole'),
        'Role',
        'Role',
      ]);
      for (const rule of roles.flatMap(rulesOf)) {
        if (rule.verbs.some((verb) => WRITES.has(verb) || verb === 'impersonate')) {
          assert.ok(COMMENT in rule, `${rule.verbs.join()} ${rule.resources.join()}.${rule.apiGroups.join()}`);
        }
      }
    }
  });

  it('have no empty fields', async () => {
    const objects = loadAll(await readFile(MANIFESTS, 'utf8')) as KubernetesObject[];
    assert.ok(objects.length > 15);
    for (const object of objects.filter(({ kind }) => kind !== 'CustomResourceDefinition')) {
      assert.deepEqual(emptyFields(object), [], nameOf(object));
    }
  });

  it('have comments, which are no fields of the installed objects', async () => {
    assert.match(
      await readFile(MANIFESTS, 'utf8'),
      /^ {2}# The webhooks of policies.+\n(?: {2}#.+\n)+ {2}- apiGroups:$/m,
    );
    const context = { namespace: 'portcullis', values: valuesOf('own') };
    const installed = [installObjects(context), chosenParts(context).map(({ objects }) => objects(context))];
    assert.ok(!JSON.stringify(installed).includes(`"${COMMENT}":`));
  });

  it('open no port to everybody but that of the webhook', () => {
    const policies = installObjects({ namespace: 'portcullis', values: valuesOf('own') }).filter(
      ({ kind }) => kind === 'NetworkPolicy',
    );
    assert.equal(policies.length, 2);
    const open: unknown[] = [];
    for (const { spec } of policies as unknown as {
      spec: { ingress: { from?: object; ports: { port: number }[] }[] };
    }[]) {
      open.push(...spec.ingress.filter(({ from }) => from === undefined).flatMap(({ ports }) => ports));
    }
    assert.deepEqual(open, [{ protocol: 'TCP', port: 9443 }]);
  });
});
