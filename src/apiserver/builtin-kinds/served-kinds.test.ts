import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { componentOf, componentSchema } from '../../resources/index.ts';
import type { Schema } from '../../resources/index.ts';
import { convertEvent } from './printers/event-conversion.ts';
import { SERVED_KINDS } from './served-kinds.ts';
import { servedKind } from '../testing/served-kind.ts';

/** Every node that can be reached from a schema. */
function nodesOf(schema: Schema): ReadonlySet<Schema> {
  const nodes = new Set<Schema>();
  const queue = [schema];
  for (let node = queue.pop(); node !== undefined; node = queue.pop()) {
    if (!nodes.has(node)) {
      nodes.add(node);
      const { properties = {}, items, additionalProperties } = node;
      queue.push(...Object.values(properties), ...(items === undefined ? [] : [items]));
      queue.push(...(typeof additionalProperties === 'object' ? [additionalProperties] : []));
    }
  }
  return nodes;
}

describe('the kinds of Kubernetes', () => {
  it('are found by apiVersion and kind', () => {
    assert.equal(servedKind('apps/v1', 'Deployment')?.resource, 'deployments');
    assert.equal(servedKind('v1', 'Deployment'), undefined);
    assert.equal(servedKind('v1', 'Pod')?.origin, 'builtin');
  });

  for (const definition of SERVED_KINDS) {
    it(`have schemas without references: ${definition.kind}`, () => {
      for (const node of nodesOf(definition.schema())) {
        assert.ok(!Object.hasOwn(node, '$ref') && node.allOf === undefined, node.description);
      }
    });

    it(`show as many cells as there are columns: ${definition.kind}`, () => {
      const object = { apiVersion: 'v1', kind: definition.kind, metadata: { name: 'a' } };
      definition.applyDefaults?.(object);
      if (definition.verbs === undefined) {
        assert.equal(definition.printer.cells(object, 0).length, definition.printer.columns.length);
      }
    });
  }
});

describe('schemas of components', () => {
  it('are shared by all references to a component', () => {
    const deployment = servedKind('apps/v1', 'Deployment')?.schema();
    const template = deployment?.properties?.['spec']?.properties?.['template'];
    assert.equal(componentOf(template ?? {}), 'io.k8s.api.core.v1.PodTemplateSpec');
    assert.equal(componentSchema('io.k8s.api.core.v1.PodSpec'), componentSchema('io.k8s.api.core.v1.PodSpec'));
    const container = componentSchema('io.k8s.api.core.v1.Container').properties?.['ports'];
    const podContainers = componentSchema('io.k8s.api.core.v1.PodSpec').properties?.['containers']?.items;
    assert.equal(podContainers?.properties?.['ports'], container);
  });

  it('may refer to themselves', () => {
    const name = 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps';
    const schema = componentSchema(name);
    const nested = schema.properties?.['properties']?.additionalProperties;
    assert.ok(typeof nested === 'object');
    assert.equal(componentOf(nested), name);
    assert.equal(nested.properties, schema.properties);
  });

  it('keep what stands beside a reference', () => {
    const template = componentSchema('io.k8s.api.apps.v1.DeploymentSpec').properties?.['strategy'];
    assert.deepEqual(template?.default, {});
    assert.match(template?.description ?? '', /deployment strategy/);
    assert.equal(template?.['x-kubernetes-patch-strategy'], 'retainKeys');
    assert.ok(template?.properties?.['rollingUpdate'] !== undefined);
  });

  it('say what has any content', () => {
    const meta = componentSchema('io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry');
    assert.equal(meta.properties?.['fieldsV1']?.['x-kubernetes-preserve-unknown-fields'], true);
  });
});

describe('events', () => {
  it('are the same in both of their groups', () => {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'a' },
      involvedObject: { kind: 'Pod' },
      message: 'text',
      source: { component: 'a' },
      reportingComponent: 'b',
      count: 3,
    };
    const converted = convertEvent(event, 'events.k8s.io/v1');
    assert.deepEqual(converted, {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'a' },
      regarding: { kind: 'Pod' },
      note: 'text',
      deprecatedSource: { component: 'a' },
      reportingController: 'b',
      deprecatedCount: 3,
    });
    assert.deepEqual(convertEvent(converted, 'v1'), event);
    assert.equal(convertEvent(event, 'v1'), event);
  });
});
