import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject, ManagedFieldsEntry, Schema } from '../../resources/index.ts';
import { MergeError } from '../../resources/structured-merge/index.ts';
import { WIDGET_SCHEMA } from '../../resources/structured-merge/testing/index.ts';
import { servedKind } from '../testing/served-kind.ts';
import { MAX_UPDATE_MANAGERS } from './managed-fields.ts';
import { managerOf } from './manager-name.ts';
import type { MergedKind } from './merge-request.ts';
import { applyServerSide } from './server-side-apply.ts';
import type { ApplyRequest } from './server-side-apply.ts';
import { WIDGET } from './testing/widget.ts';
import { trackUpdate } from './track-update.ts';

const NOW = Date.parse('2026-01-02T03:04:05.678Z');

function widget(spec: object, metadata: object = {}): KubernetesObject {
  return { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w', ...metadata }, spec };
}

function apply(live: KubernetesObject | undefined, applied: KubernetesObject, options: Partial<ApplyRequest> = {}) {
  return applyServerSide({ definition: WIDGET, live, applied, manager: 'alpha', now: NOW, ...options });
}

/** The object of an apply that has no conflicts. */
function applied(...parameters: Parameters<typeof apply>): KubernetesObject {
  const { object, conflicts } = apply(...parameters);
  assert.ok(object !== undefined, conflicts?.message);
  return object;
}

function updated(
  live: KubernetesObject | undefined,
  object: KubernetesObject,
  manager = 'editor',
  now = NOW,
): KubernetesObject {
  return trackUpdate({ definition: WIDGET, live, updated: object, manager, now });
}

const managersOf = (object: KubernetesObject): readonly (string | undefined)[] =>
  (object.metadata.managedFields ?? []).map(({ manager }) => manager);

const entryOf = (object: KubernetesObject, name: string): ManagedFieldsEntry | undefined =>
  object.metadata.managedFields?.find(({ manager }) => manager === name);

describe('applyServerSide', () => {
  it('creates an object, and records the manager of its fields', () => {
    assert.deepEqual(applied(undefined, widget({ mode: 'a' })), {
      ...widget({ mode: 'a' }),
      metadata: {
        name: 'w',
        managedFields: [
          {
            manager: 'alpha',
            operation: 'Apply',
            apiVersion: 'example.com/v1',
            time: '2026-01-02T03:04:05Z',
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:spec': { 'f:mode': {} } },
          },
        ],
      },
    });
  });

  it('changes nothing when the same is applied again', () => {
    const live = applied(undefined, widget({ mode: 'a', tags: ['x'] }));
    assert.equal(applied(live, widget({ mode: 'a', tags: ['x'] }), { now: NOW + 60_000 }), live);
  });

  it('reports conflicts with an API server’s message, and takes over fields with force', () => {
    const live = updated(undefined, widget({ mode: 'a', steps: ['x'] }));
    const { conflicts } = apply(live, widget({ mode: 'b', steps: ['y'] }));
    assert.deepEqual(conflicts, {
      message:
        'Apply failed with 2 conflicts: conflicts with "editor" using example.com/v1:\n- .spec.mode\n- .spec.steps',
      causes: ['.spec.mode', '.spec.steps'].map((field) => ({
        reason: 'FieldManagerConflict',
        message: 'conflict with "editor" using example.com/v1',
        field,
      })),
    });
    const forced = applied(live, widget({ mode: 'b', steps: ['y'] }), { force: true });
    assert.deepEqual(forced['spec'], { mode: 'b', steps: ['y'] });
    assert.deepEqual(entryOf(forced, 'editor')?.fieldsV1, { 'f:spec': {} });
    assert.match(
      apply(applied(undefined, widget({ mode: 'a' })), widget({ mode: 'b' }), { manager: 'beta' }).conflicts?.message ??
        '',
      /^Apply failed with 1 conflict: conflict with "alpha": \.spec\.mode$/,
    );
  });

  it('removes fields that are no longer applied, unless others own them', () => {
    const one = applied(
      undefined,
      widget({ mode: 'a', options: { a: '1', b: '2' }, ports: [{ port: 1 }, { port: 2 }] }),
    );
    const both = applied(one, widget({ options: { b: '2' }, ports: [{ port: 2 }] }), { manager: 'beta' });
    assert.equal(entryOf(both, 'beta')?.time, undefined, 'it changed nothing');
    const { spec: _spec, ...nothing } = widget({});
    const left = applied(both, nothing);
    assert.deepEqual(left['spec'], { options: { b: '2' }, ports: [{ port: 2 }] });
    assert.deepEqual(managersOf(left), ['beta']);
  });

  it('assigns existing fields to a manager of their own', () => {
    const first = applied(widget({ mode: 'a' }), widget({ isOn: true }));
    assert.deepEqual(managersOf(first), ['alpha', 'before-first-apply']);
    assert.deepEqual(first['spec'], { mode: 'a', isOn: true });
  });

  it('keeps the order that is applied', () => {
    const live = updated(undefined, widget({ tags: ['a', 'b', 'c'] }));
    assert.deepEqual(applied(live, widget({ tags: ['c', 'd', 'a'] }))['spec'], { tags: ['b', 'c', 'd', 'a'] });
  });

  it('lets kubectl go on from its client-side apply', () => {
    const annotation = JSON.stringify(widget({ mode: 'a' }));
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': annotation };
    const live = updated(undefined, widget({ mode: 'a' }, { annotations }), 'kubectl-client-side-apply');
    assert.ok(apply(live, widget({ mode: 'b' })).conflicts !== undefined);
    const next = applied(live, widget({ mode: 'b' }), { manager: 'kubectl' });
    assert.deepEqual(next['spec'], { mode: 'b' });
    assert.deepEqual(next.metadata.annotations, {
      'kubectl.kubernetes.io/last-applied-configuration':
        '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"mode":"b"}}\n',
    });
    const edited = updated(live, { ...live, spec: { mode: 'c' } });
    assert.match(
      apply(edited, widget({ mode: 'b' }), { manager: 'kubectl' }).conflicts?.message ?? '',
      /conflict with "editor"/,
    );
  });

  it('tracks fields of the status separately', () => {
    const live = applied(undefined, widget({ mode: 'a' }));
    const status = { ...widget({ mode: 'x' }), status: { phase: 'Ready' } };
    const next = applied(live, status, { subresource: 'status' });
    const entry = next.metadata.managedFields?.find(({ subresource }) => subresource === 'status');
    assert.deepEqual(entry?.fieldsV1, { 'f:status': { 'f:phase': {} } });
    assert.equal(next.metadata.managedFields?.length, 2);
  });

  for (const [object, message] of [
    [{ ...widget({}), kind: 'Other' }, 'invalid object type: example.com/v1, Kind=Other'],
    [widget({}, { managedFields: [] }), 'metadata.managedFields must be nil'],
    [
      widget({ replicas: 'x', tags: [{}] }),
      /^failed to create typed patch object \(\/w; example\.com\/v1, Kind=Widget\): errors:\n  \.spec\.replicas: expected numeric \(int or float\), got string\n  \.spec\.tags: element 0: associative list without keys has an element that's a map type$/,
    ],
    [widget({ nothing: 1 }), /: \.spec\.nothing: field not declared in schema$/],
    [widget({ tags: ['a', 'a'] }), /: \.spec\.tags: duplicate entries for key \[="a"\]$/],
    [widget({ mode: 1 }), /: \.spec\.mode: expected string, got &value\.valueUnstructured\{Value:1\}$/],
    [widget({ isOn: ['x'] }), /: \.spec\.isOn: expected boolean, got &\{\[x\]\}$/],
  ] as const) {
    it(`refuses ${JSON.stringify(object).slice(0, 90)}`, () => {
      assert.throws(() => apply(undefined, object), { name: 'MergeError', message });
    });
  }

  it('fails when the stored managedFields are malformed', () => {
    const live = widget({}, { managedFields: [{ manager: 'x', operation: 'Apply' }] });
    assert.throws(
      () => apply(live, widget({})),
      new MergeError('fields-malformed', 'failed to decode managed fields: apiVersion must not be empty'),
    );
  });

  it('forgets managers of versions that are not served, and knows the schemas of those that are', () => {
    const old = widget({ steps: ['a'] }, { managedFields: [] });
    const entry: ManagedFieldsEntry = {
      manager: 'old',
      operation: 'Update',
      apiVersion: 'example.com/v1beta1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:steps': {} } },
    };
    const live = { ...old, metadata: { ...old.metadata, managedFields: [entry] } };
    assert.deepEqual(managersOf(applied(live, widget({ mode: 'a' }))), ['alpha']);
    const schemaOf = (apiVersion: string): Schema | undefined =>
      apiVersion === 'example.com/v1beta1' ? WIDGET_SCHEMA : undefined;
    assert.deepEqual(managersOf(applied(live, widget({ mode: 'a' }), { schemaOf })), ['alpha', 'old']);
    assert.match(
      apply(live, widget({ steps: ['b'] }), { schemaOf }).conflicts?.message ?? '',
      /conflict with "old" using example\.com\/v1beta1: \.spec\.steps/,
    );
  });

  it('gives all of what has become atomic to those who owned parts of it', () => {
    const live = applied(undefined, widget({ options: { a: '1' } }));
    const spec = WIDGET_SCHEMA.properties?.['spec'];
    const properties = {
      ...spec?.properties,
      options: { ...spec?.properties?.['options'], 'x-kubernetes-map-type': 'atomic' },
    };
    const schema = { ...WIDGET_SCHEMA, properties: { spec: { ...spec, properties } } } as Schema;
    const definition: MergedKind = { ...WIDGET, schema: () => schema };
    const next = applied(live, widget({ mode: 'a' }), { definition, manager: 'beta' });
    assert.deepEqual(entryOf(next, 'alpha')?.fieldsV1, { 'f:spec': { 'f:options': {} } });
  });

  it('never goes too deep', () => {
    let deep: object = {};
    for (let depth = 0; depth < 10_000; depth++) {
      deep = { a: deep };
    }
    assert.throws(() => apply(undefined, widget({ free: deep })), /nested deeper than 500 levels/);
  });
});

describe('trackUpdate', () => {
  it('gives what changes to the writer, and takes it from others', () => {
    const live = updated(undefined, widget({ mode: 'a', isOn: true }), 'first');
    const next = updated(live, { ...live, spec: { mode: 'b', isOn: true } }, 'second');
    assert.deepEqual(entryOf(next, 'first')?.fieldsV1, { 'f:spec': { '.': {}, 'f:isOn': {} } });
    assert.deepEqual(entryOf(next, 'second')?.fieldsV1, { 'f:spec': { 'f:mode': {} } });
  });

  it('keeps times where nothing changes', () => {
    const live = updated(undefined, widget({ mode: 'a' }));
    assert.deepEqual(updated(live, live, 'editor', NOW + 5_000), live);
  });

  it('counts the parts of Go structs as there from the start', () => {
    const definition = servedKind('v1', 'Service');
    assert.ok(definition !== undefined);
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { selector: { a: 'b' } } };
    const created = trackUpdate({ definition, live: undefined, updated: service, manager: '', now: NOW });
    assert.deepEqual(entryOf(created, 'unknown')?.fieldsV1, { 'f:spec': { 'f:selector': {} } });
  });

  it('merges the oldest managers when there are too many', () => {
    let tags: KubernetesObject | undefined;
    for (let index = 0; index <= MAX_UPDATE_MANAGERS; index++) {
      const before = (tags?.['spec'] as { tags?: string[] } | undefined)?.tags ?? [];
      tags = updated(
        tags,
        { ...(tags ?? widget({})), spec: { tags: [...before, `t${index}`] } },
        `m${index}`,
        NOW + index * 1000,
      );
    }
    assert.ok(tags !== undefined);
    assert.equal(tags.metadata.managedFields?.length, MAX_UPDATE_MANAGERS);
    assert.deepEqual(entryOf(tags, 'ancient-changes')?.fieldsV1, {
      'f:spec': { '.': {}, 'f:tags': { '.': {}, 'v:"t0"': {}, 'v:"t1"': {} } },
    });
  });

  it('forgets all managers on demand, and does not begin to track later', () => {
    const live = updated(undefined, widget({ mode: 'a' }));
    const reset = updated(live, { ...live, metadata: { ...live.metadata, managedFields: [{}] } });
    assert.equal(reset.metadata.managedFields, undefined);
    assert.equal(updated(reset, { ...reset, spec: { mode: 'b' } }).metadata.managedFields, undefined);
  });

  it('has no managers when the fields cannot be determined', () => {
    const live = updated(undefined, widget({ mode: 'a' }));
    const next = updated(live, { ...live, spec: { ports: [1] } });
    assert.equal(next.metadata.managedFields, undefined);
  });
});

describe('managerOf', () => {
  for (const [fieldManager, userAgent, expected] of [
    ['mine', 'kubectl/v1.32', 'mine'],
    [undefined, 'kubectl/v1.32 (linux/amd64)', 'kubectl'],
    ['', 'a\u0000b c/1', 'ab c'],
    [undefined, 'é'.repeat(100), 'é'.repeat(64)],
    [undefined, undefined, ''],
  ] as const) {
    it(`is ${expected.slice(0, 20)} for ${fieldManager} and ${userAgent?.slice(0, 20)}`, () => {
      assert.equal(managerOf(fieldManager, userAgent), expected);
    });
  }
});
