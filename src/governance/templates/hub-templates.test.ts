import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { namespaceGate, resolveHubTemplates, resolveTemplates } from './resolve-templates.ts';
import type { TemplateResolution } from './resolve-templates.ts';
import { NO_TEMPLATE_OBJECTS } from './rendering/template-objects.ts';
import type { TemplateObjects } from './rendering/template-objects.ts';

/** A hub whose every object has this text under the key `k`. */
function hub(text: string): TemplateObjects {
  return { ...NO_TEMPLATE_OBJECTS, get: () => ({ state: 'found', object: { data: { k: text } } }) };
}

const CONTEXT: JsonObject = {
  ManagedClusterName: 'east',
  ManagedClusterLabels: { zone: 'z1' },
  PolicyMetadata: { name: 'p', namespace: 'policies' },
};

function onHub(source: JsonObject, text = ''): TemplateResolution {
  return resolveHubTemplates(source, {
    objects: hub(text),
    context: CONTEXT,
    mayRead: namespaceGate('policies', 'east'),
    defaultNamespace: 'policies',
  });
}

function valueOf(result: TemplateResolution): JsonValue {
  assert.equal(result.state, 'resolved', result.state === 'failed' ? result.error.message : '');
  return result.state === 'resolved' ? result.value : null;
}

function errorOf(result: TemplateResolution): string {
  return result.state === 'failed' ? result.error.message : `state ${result.state}`;
}

const VALUE = '{{hub fromConfigMap "" "cm" "k" hub}}';

describe('hub templates', () => {
  test('are resolved; those of the managed cluster stay', () => {
    const source = {
      a: '{{hub .ManagedClusterName hub}}-{{ .ObjectName }}',
      b: '{{hub- .ManagedClusterLabels.zone | upper -hub}}',
      c: '{{hub "5" | toInt hub}}',
      d: '{{ "5" | toInt }}',
      raw: '- name: {{hub .PolicyMetadata.name hub}}\n  x: {{ if true }}y{{ end }}',
      deep: { e: '{{ fromConfigMap "a" "{{hub .ManagedClusterName hub}}" "k" }}' },
    };
    assert.deepEqual(valueOf(onHub(source)), {
      a: 'east-{{ .ObjectName }}',
      b: 'Z1',
      c: 5,
      d: '{{ "5" | toInt }}',
      raw: '- name: p\n  x: {{ if true }}y{{ end }}',
      deep: { e: '{{ fromConfigMap "a" "east" "k" }}' },
    });
  });

  test('text of several lines stays text, whatever stands around typed actions', () => {
    for (const [typed, value] of [
      ['"{a: b}" | toLiteral', '{a: b}'],
      ['"5" | toInt', '5'],
      ['"true" | toBool', 'true'],
      ['copyConfigMapData "" "cm"', '{"k":"v"}'],
    ] as const) {
      for (const [start, end] of [
        ['{{hub with "x" hub}}', '{{hub end hub}}'],
        ['{{hub- if true hub}}', '{{hub- end hub}}'],
        ['{{hub $x := 1 hub}}{{hub if $x hub}}', '{{hub end hub}}'],
      ] as const) {
        const source = { raw: `${start}\n- data: '{{hub ${typed} hub}}'\n${end}`, more: '{{ "5" | toInt }}' };
        const { more, ...text } = valueOf(onHub(source, 'v')) as JsonObject;
        const { raw } = valueOf(resolveTemplates(text, { objects: NO_TEMPLATE_OBJECTS })) as JsonObject;
        const lines = typeof raw === 'string' ? raw.trim() : raw;
        assert.deepEqual([lines, more], [`- data: ${value}`, source.more]);
      }
    }
  });

  test('quotes around a value beside an action of the managed cluster stay', () => {
    const line = `- a: '{{hub "x: y" hub}}-{{ "5" | toInt }}'\n{{ "" }}`;
    assert.deepEqual(valueOf(onHub({ raw: line })), { raw: line.replace('{{hub "x: y" hub}}', 'x: y') });
  });

  test('indent counts from the object that the ConfigurationPolicy wraps', () => {
    const policy = (text: string): JsonObject => ({
      spec: { 'object-templates': [{ objectDefinition: { data: { k: text } } }] },
    });
    const source = policy('a:\n  {{hub "x\\ny" | indent 6 hub}}\n  {{hub "x\\ny" | autoindent hub}}');
    assert.deepEqual(valueOf(onHub(source)), policy('a:\n  x\n  y\n  x\n  y'));
  });

  test('read their namespace and their cluster only, and no Secrets', () => {
    assert.match(errorOf(onHub({ a: '{{hub fromConfigMap "b" "cm" "k" hub}}' })), /restricted to namespace policies/);
    assert.match(
      errorOf(onHub({ a: '{{hub fromSecret "" "s" "k" hub}}' })),
      /Secrets are not available to hub templates/,
    );
    assert.equal(
      onHub({ a: '{{hub lookup "cluster.open-cluster-management.io/v1" "ManagedCluster" "" "east" hub}}' }).state,
      'resolved',
    );
    assert.equal(onHub({ a: '{{hub skipObject hub}}' }).state, 'failed');
  });

  const injections = ['{{ fail "x" }}', '{', '{{', '}}', '{{ "a" }}{{', 'a{', '" | fail', "'", '{"a":{"b":{}}}'];
  for (const text of injections) {
    test(`the value ${text} of the hub is no template on the managed cluster`, () => {
      const source = {
        a: `x ${VALUE}`,
        b: `{${VALUE}{`,
        c: `${VALUE}${VALUE}`,
        d: '{{hub copyConfigMapData "" "cm" hub}}',
      };
      const resolved = valueOf(onHub(source, text)) as JsonObject;
      const managed = resolveTemplates(resolved, { objects: NO_TEMPLATE_OBJECTS });
      assert.deepEqual(valueOf(managed), { a: `x ${text}`, b: `{${text}{`, c: text + text, d: { k: text } });
    });
  }

  test('values inside of actions are numbers, or stay within double quotes', () => {
    const inside = (template: string, text: string): string => {
      const result = onHub({ a: template }, text);
      return result.state === 'resolved' ? JSON.stringify(result.value) : errorOf(result);
    };
    assert.equal(inside(`{{ add ${VALUE} 1 }}`, '41'), '{"a":"{{ add 41 1 }}"}');
    assert.equal(inside(`{{ upper "${VALUE}" }}`, 'a b'), JSON.stringify({ a: '{{ upper "a b" }}' }));
    for (const [template, text] of [
      [`{{ add ${VALUE} 1 }}`, '1) (now'],
      [`{{ upper "${VALUE}" }}`, 'a" | fail "b'],
      [`{{ upper "${VALUE}" }}`, 'a\\'],
      [`{{ upper "${VALUE}" }}`, 'a\nb'],
      [`{{ upper "${VALUE}" }}`, '}}{{'],
      [`{{ upper \`"${VALUE}\` }}`, 'a'],
      [`{{ eq "\\"" ${VALUE} }}`, 'now'],
      [`{{/* ${VALUE} */}}`, '*/}}'],
    ] as const) {
      assert.match(inside(template, text), /must be a number, or in double quotes/, template);
    }
    assert.match(inside(`{{ "${'x'.repeat(3000)}${VALUE}" }}`, 'a'), /longer than 2000/);
  });

  test('any value of the hub is the same text on the managed cluster', () => {
    const text = fc.array(fc.constantFrom('{', '}', '{{', '}}', 'a', '"', '| toInt', ' ', '\n', 'hub'), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(text, (parts) => {
        const value = parts.join('');
        const resolved = valueOf(onHub({ a: `a${VALUE}`, b: `${VALUE}{{ "b" }}` }, value)) as JsonObject;
        fc.pre(!JSON.stringify(resolved).includes('{{hub'));
        const managed = resolveTemplates(resolved, { objects: NO_TEMPLATE_OBJECTS });
        assert.deepEqual(valueOf(managed), { a: `a${value}`, b: `${value}b` });
      }),
    );
  });
});
