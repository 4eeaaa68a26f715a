import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { TemplateError } from '../../go/templates/index.ts';
import { parseLabelSelector } from '../../resources/index.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { hasTemplates, namespaceGate, resolveTemplates } from './resolve-templates.ts';
import type { TemplateOptions, TemplateResolution } from './resolve-templates.ts';
import type { TemplateObjects } from './rendering/template-objects.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';

function object(apiVersion: string, kind: string, namespace: string, name: string, rest: JsonObject = {}): JsonObject {
  const labels = own(rest, 'labels') ?? {};
  return { apiVersion, kind, metadata: { name, namespace, labels, managedFields: [{ '.': {} }] }, ...rest };
}

const CLAIM = 'cluster.open-cluster-management.io/v1alpha1';
const ROLE = 'node-role.kubernetes.io/';

const OBJECTS: readonly JsonObject[] = [
  object('v1', 'ConfigMap', 'ns', 'cm', {
    labels: { app: 'a' },
    data: {
      port: '8080',
      on: 'true',
      text: 'one\ntwo',
      template: '{{ fail "parsed again" }}',
      inject: 'x\nevil: "true"\n',
      quotes: `a' "b: c`,
      list: '[1, two]',
    },
  }),
  object('v1', 'ConfigMap', 'ns', 'other', { labels: { app: 'b' }, data: { port: '1' } }),
  object('v1', 'Secret', 'ns', 'secret', { data: { token: 'aHVudGVyMg==' } }),
  object(CLAIM, 'ClusterClaim', '', 'id.k8s.io', { spec: { value: 'cluster-1' } }),
  object('v1', 'Node', '', 'plain', { labels: { [`${ROLE}infra`]: '', [`${ROLE}worker`]: '' } }),
  object('v1', 'Node', '', 'more', { labels: { [`${ROLE}infra`]: '', [`${ROLE}master`]: '' } }),
];

function metadataOf(one: JsonObject): JsonObject {
  const metadata = own(one, 'metadata');
  return isJsonObject(metadata) ? metadata : {};
}

/** The objects above; those of namespace `later` are not known yet, and the kind `Gone` is not served. */
const CLUSTER: TemplateObjects = {
  get: (apiVersion, kind, namespace, name) => {
    if (namespace === 'later') {
      return { state: 'unknown' };
    }
    if (kind === 'Gone') {
      return { state: 'unserved' };
    }
    const found = OBJECTS.find(
      (one) =>
        own(one, 'apiVersion') === apiVersion &&
        own(one, 'kind') === kind &&
        metadataOf(one)['namespace'] === namespace &&
        metadataOf(one)['name'] === name,
    );
    return found === undefined ? { state: 'absent' } : { state: 'found', object: found };
  },
  list: (_apiVersion, kind, namespace, selector) => {
    const parsed = parseLabelSelector(selector);
    return namespace === 'later'
      ? { state: 'unknown' }
      : {
          state: 'found',
          objects: OBJECTS.filter(
            (one) =>
              own(one, 'kind') === kind &&
              (namespace === '' || metadataOf(one)['namespace'] === namespace) &&
              parsed.matches(metadataOf(one)['labels'] as Record<string, string>),
          ),
        };
  },
};

function resolve(source: JsonObject | string, options: Partial<TemplateOptions> = {}): TemplateResolution {
  return resolveTemplates(source, { objects: CLUSTER, ...options });
}

function valueOf(source: JsonObject | string, options: Partial<TemplateOptions> = {}): JsonValue {
  const result = resolve(source, options);
  assert.equal(result.state, 'resolved', result.state === 'failed' ? result.error.message : '');
  return result.state === 'resolved' ? result.value : null;
}

function errorOf(source: JsonObject | string, options: Partial<TemplateOptions> = {}): string {
  const result = resolve(source, options);
  return result.state === 'failed' ? result.error.message : `state ${result.state}`;
}

const FROM = (key: string): string => `fromConfigMap "ns" "cm" "${key}"`;

/** The text of a field of an objectDefinition, and its value. */
const FIELDS: readonly (readonly [template: string, value: JsonValue])[] = [
  ['plain', 'plain'],
  ['}} {', '}} {'],
  ['{{ "a" }}-{{ 5 }}', 'a-5'],
  ['{{ 5 }}', '5'],
  ['80{{ 80 }}', '8080'],
  ['{{ true }}', 'true'],
  [`{{ ${FROM('port')} }}`, '8080'],
  [`{{ ${FROM('port')} | toInt }}`, 8080],
  [`{{- ${FROM('port')} | toInt -}}`, 8080],
  [`{{ ${FROM('on')} | toBool }}`, true],
  [`  {{ ${FROM('port')} | toInt }}\n`, 8080],
  [`{{ $p := ${FROM('port')} | toInt }}{{ add $p 1 }}`, 8081],
  [`{{ if ${FROM('on')} | toBool }}{{ 1 | toInt }}{{ else }}{{ 2 | toInt }}{{ end }}`, 1],
  [`{{ if ${FROM('on')} | toBool }}true{{ else }}false{{ end }}`, true],
  ['{{ if false }}{{ 1 | toInt }}{{ end }}', null],
  ['{{ "1" | toInt }}{{ "2" | toInt }}', 12],
  ['{{ "1" | toInt }} {{ "2" | toInt }}', '1 2'],
  ['{{ "1" | toInt }}/{{ "2" | toInt }}', '1/2'],
  ['{{ "1" | toInt }} # {{ "2" | toInt }}', 1],
  // A block scalar of one line is a field of one line; its quotes go, as upstream.
  ['{{- "5" | toInt -}}\n', 5],
  [`'{{ "5" | toInt }}'\n`, 5],
  [`'{{- "[1]" | toLiteral -}}'\n`, [1]],
  [`'{{ "5" | toInt }}'`, `'5'`],
  // Text of several lines stays text, whatever stands around it.
  ['{{ if true }}\n{{ "5" | toInt }}\n{{ end }}', '\n5\n'],
  ['{{- if true }}\non: {{ "true" | toBool }}\n{{- end }}', '\non: true'],
  ['{{ range list "80" "443" }}\n- port: {{ . | toInt }}\n{{ end }}', '\n- port: 80\n\n- port: 443\n'],
  ['{{ with "x" }}\na: {{ copyConfigMapData "ns" "other" }}\n{{ end }}', '\na: {"port":"1"}\n'],
  ['{{ "5" | toInt }}\n{{ "6" | toInt }}', '5\n6'],
  ['{{ "5" | toInt }}\n\n', '5\n\n'],
  ['{{ "[1]" | toLiteral }}\nmore', '[1]\nmore'],
  ['{{ copySecretData "ns" "secret" }}\n{{ "" }}', '{"token":"aHVudGVyMg=="}\n'],
  ['{{ toInt "5" }}', '5'],
  ['a{{ "5" | toInt }}', 'a5'],
  [`{{ ${FROM('list')} }}`, '[1, two]'],
  [`{{ ${FROM('list')} | toLiteral }}`, [1, 'two']],
  ['{{ dict "a" (list 1 true) | toRawJson | toLiteral }}', { a: [1, true] }],
  ['{{ "null" | toLiteral }}', null],
  ['{{ copyConfigMapData "ns" "other" }}', { port: '1' }],
  ['{{- copySecretData "ns" "secret" -}}', { token: 'aHVudGVyMg==' }],
  ['{{ fromSecret "ns" "secret" "token" | base64dec }}', 'hunter2'],
  ['{{ fromClusterClaim "id.k8s.io" }}{{ lookupClusterClaim "none" }}', 'cluster-1'],
  [`{{ ${FROM('missing')} }}`, ''],
  ['{{ (lookup "v1" "ConfigMap" "ns" "cm").data.port }}', '8080'],
  ['{{ (lookup "v1" "ConfigMap" "ns" "none").data.port }}', '<no value>'],
  ['{{ empty (lookup "v1" "ConfigMap" "ns" "none") }}', 'true'],
  ['{{ range (lookup "v1" "ConfigMap" "ns" "").items }}{{ .metadata.name }},{{ end }}', 'cm,other,'],
  ['{{ range (lookup "v1" "ConfigMap" "ns" "" "app in (a)" "app!=b").items }}{{ .metadata.name }}{{ end }}', 'cm'],
  ['{{ len (lookup "v1" "ConfigMap" "none" "").items }}', '0'],
  ['{{ (lookup "v1" "ConfigMap" "ns" "cm").metadata.managedFields }}', '<no value>'],
  ['{{ range (getNodesWithExactRoles "infra").items }}{{ .metadata.name }}{{ end }}', 'plain'],
  ['{{ hasNodesWithExactRoles "infra" }} {{ hasNodesWithExactRoles "storage" }}', 'true false'],
  [`start\n  {{ ${FROM('text')} | autoindent }}\nend`, 'start\n  one\n  two\nend'],
  [`{{ ${FROM('text')} | autoindent }}`, 'one\ntwo'],
  // Four columns of YAML come before the lines of this field.
  [`start\n  {{ ${FROM('text')} | indent 6 }}\nend`, 'start\n  one\n  two\nend'],
  [`start{{ ${FROM('text')} | nindent 6 }}\nend`, 'start\n  one\n  two\nend'],
  // Within a field of several lines, quotes around an action that makes another type go, as upstream.
  [`a: '{{ ${FROM('port')} | toInt }}'\nb: '{{ 1 }}'\n`, "a: 8080\nb: '1'\n"],
  [`a: '{{ ${FROM('list')} | toLiteral }}' # list\n`, 'a: [1, two] # list\n'],
  [`a: '{{- "5" | toInt -}}'\nb: 1`, 'a: 5\nb: 1'],
  [`{a: '{{ "x" }}', b: '{{ "5" | toInt }}', c: 'y'}\n{{ "" }}`, `{a: 'x', b: 5, c: 'y'}\n`],
  ['{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" "x" }}', '<x>'],
  ['{{ .ObjectName }}/{{ .Object.spec.replicas }}', 'me/3'],
];

/** Text of the cluster that must not become anything else: its key, where it is used. */
const HOSTILE: readonly string[] = ['template', 'inject', 'quotes', 'list', 'text'];

describe('objectDefinitions', () => {
  for (const [template, value] of FIELDS) {
    test(`${JSON.stringify(template)} resolves to ${JSON.stringify(value)}`, () => {
      const context = { ObjectName: 'me', Object: { spec: { replicas: 3 } } };
      assert.deepEqual(valueOf({ data: { key: template } }, { context }), { data: { key: value } });
    });
  }

  test('everything else of the object stays as it is', () => {
    const source = { kind: 'A', n: 1.5, b: false, z: null, list: ['x', { __proto__x: 1 }], s: 'a: b' };
    assert.deepEqual(valueOf(source), source);
    const proto = JSON.stringify(valueOf(JSON.parse('{"__proto__": {"a": "{{ 1 }}"}}') as JsonObject));
    assert.equal(proto, '{"__proto__":{"a":"1"}}');
  });

  test('keys are rendered as text; equal ones are refused', () => {
    assert.deepEqual(valueOf({ data: { '{{ "a" }}-{{ 1 | toInt }}': 'x' } }), { data: { 'a-1': 'x' } });
    assert.match(errorOf({ data: { a: '', '{{ "a" }}': '' } }), /^not a valid template: data: two keys/);
  });

  test('items of lists are texts, as upstream, which looks for a key', () => {
    assert.deepEqual(valueOf({ args: ['{{ "5" | toInt }}'], l: [{ a: '{{ "5" | toInt }}' }] }), {
      args: ['5'],
      l: [{ a: 5 }],
    });
  });

  for (const key of HOSTILE) {
    test(`the value ${JSON.stringify(key)} of the cluster stays one text`, () => {
      const data = own(OBJECTS[0] ?? {}, 'data') as Record<string, string>;
      const text = data[key] ?? '';
      assert.deepEqual(valueOf({ a: `{{ ${FROM(key)} }}`, b: `x {{ ${FROM(key)} }}` }), { a: text, b: `x ${text}` });
      // Beside an action that makes another type, and in keys.
      assert.deepEqual(valueOf({ a: `{{ $x := "1" | toInt }}{{ ${FROM(key)} }}` }), { a: text });
      assert.deepEqual(valueOf({ [`{{ ${FROM(key)} }}`]: 1 }), { [text]: 1 });
      assert.deepEqual(valueOf({ a: `{{ copyConfigMapData "ns" "cm" }}` }), { a: data });
    });
  }

  test('toLiteral stays within its field', () => {
    const objects: TemplateObjects = {
      ...CLUSTER,
      get: () => ({
        state: 'found',
        object: { data: { a: '{x: 1} # }', b: '- 1\n- 2', c: "1' }", d: '{{ 1 }}', e: '&a [*a]' } },
      }),
    };
    const field = (key: string): JsonObject => ({ a: `{{ fromConfigMap "n" "n" "${key}" | toLiteral }}` });
    assert.deepEqual(valueOf(field('a'), { objects }), { a: { x: 1 } });
    assert.match(errorOf(field('b'), { objects }), /newlines are not allowed/);
    assert.deepEqual(valueOf(field('c'), { objects }), { a: "1' }" });
    assert.match(
      errorOf(field('d'), { objects }),
      /a: cannot execute the template: line 1 of the result is not valid YAML|nested/,
    );
    assert.match(errorOf(field('e'), { objects }), /the alias \*a stands for a value that it is part of/);
  });

  test('skipObject skips the object, also when something fails later', () => {
    assert.equal(resolve({ a: '{{ skipObject }}' }).state, 'skipped');
    assert.equal(resolve({ a: '{{ skipObject true }}', b: '{{ fail "x" }}' }).state, 'skipped');
    assert.deepEqual(valueOf({ a: 'x{{ skipObject false }}' }), { a: 'x' });
    assert.match(errorOf({ a: '{{ skipObject 1 }}' }), /expected a bool/);
  });

  test('errors name field, line and reason', () => {
    assert.equal(
      errorOf({ spec: { list: [{ x: 'a\n{{ fromConfigMap "ns" "none" "x" }}' }] } }),
      'spec.list[0].x: cannot execute the template: line 2: there is no ConfigMap ns/none',
    );
    assert.match(errorOf({ a: '{{ if }}' }), /^a: not a valid template: line 1/);
    assert.match(errorOf({ a: '{{ lookup "v1" "Gone" "ns" "x" }}' }), /does not serve Gone of v1/);
    assert.match(errorOf({ a: '{{ lookup "" "" "" "" }}' }), /the apiVersion and kind are required/);
    assert.match(errorOf({ a: '{{ lookup "v1" "Pod" "ns" "" "a in" }}' }), /not a valid label selector: /);
    assert.match(errorOf({ a: '{{ fromClusterClaim "none" }}' }), /there is no ClusterClaim none/);
    assert.match(errorOf({ a: '{{ fromConfigMap "ns" "" "x" }}' }), /the name of the ConfigMap is empty/);
    assert.match(errorOf({ a: '{{ copySecretData "" "x" }}' }), /the namespace of the Secret is empty/);
    assert.match(errorOf({ a: '{{ getNodesWithExactRoles "" }}' }), /at least one role is required/);
    assert.match(errorOf({ a: '{{hub .ManagedClusterName hub}}' }), /resolved on a hub/);
  });

  test('a variable that there is not is an error, and one without a value is none', () => {
    const rendered = (text: string, context: JsonObject): TemplateResolution =>
      resolveTemplates({ a: text }, { objects: CLUSTER, context });
    const unknown = rendered('{{ .ObjectNamespace }}', { ObjectName: 'me' });
    assert.match(
      unknown.state === 'failed' ? unknown.error.message : '',
      /line 1: can't evaluate field ObjectNamespace: the variables are ObjectName$/,
    );
    assert.deepEqual(rendered('{{ empty .Object }}{{ .Object.spec }}', { Object: {} }), {
      state: 'resolved',
      value: { a: 'true<no value>' },
      lookedUp: [],
      usedSensitive: false,
    });
    assert.equal(rendered('{{ index .Object.spec 0 }}', { Object: {} }).state, 'failed');
  });

  test('errors tell no secrets', () => {
    const objects: TemplateObjects = {
      ...CLUSTER,
      get: () => ({ state: 'found', object: { data: { a: 'hunter2: *hunter2', b: '@hunter2 : - {' } } }),
    };
    for (const template of [
      'toLiteral',
      'mustFromJson',
      'fromYaml',
      'semver',
      'regexMatch "x" | ternary 1',
      'base64dec',
      'atoi | until',
    ]) {
      for (const key of ['a', 'b']) {
        const message = errorOf({ a: `{{ fromSecret "n" "n" "${key}" | ${template} }}` }, { objects });
        assert.doesNotMatch(message, /hunter2/, template);
      }
    }
  });
});

/** object-templates-raw, and its value. */
const RAW: readonly (readonly [text: string, value: JsonValue])[] = [
  ['', []],
  ['{{ if false }}- a: 1{{ end }}', []],
  ['- a: {{ "1" | toInt }}\n  b: 2', [{ a: 1, b: 2 }]],
  [`- a: '{{ "1" | toInt }}'\n  b: '{{ 1 }}'`, [{ a: 1, b: '1' }]],
  [`- a: '{{ copyConfigMapData "ns" "other" }}' # all`, [{ a: { port: '1' } }]],
  [`- {a: '{{ "x" }}', b: '{{ "5" | toInt }}', c: '{{- "1" | toInt -}}'}\n- 1`, [{ a: 'x', b: 5, c: 1 }, 1]],
  ['- a: |\n    {{ copyConfigMapData "ns" "other" }}\n  b: 1', [{ a: { port: '1' }, b: 1 }]],
  [`- a: >-\n    '{{- "5" | toInt -}}'\n\n- 2`, [{ a: 5 }, 2]],
  ['- a: |\n    {{ "5" | toInt }}\n    more\n  b: 1', [{ a: '5\nmore\n', b: 1 }]],
  ['- a: |\n    x: {{ "5" | toInt }}\n  b: 1', [{ a: 'x: 5\n', b: 1 }]],
  ['- a: |\n    {{ if true }}\n    x: {{ "5" | toInt }}\n    {{ end }}\n', [{ a: '\nx: 5\n' }]],
  [
    '{{- range $i, $cm := (lookup "v1" "ConfigMap" "ns" "").items }}\n- name: {{ $cm.metadata.name }}\n  index: {{ $i }}\n{{- end }}\n',
    [
      { name: 'cm', index: 0 },
      { name: 'other', index: 1 },
    ],
  ],
  [`- text: |\n    {{ ${FROM('text')} | autoindent }}\n  b: 1`, [{ text: 'one\ntwo\n', b: 1 }]],
  [`- text: |\n    {{ ${FROM('text')} | indent 4 }}\n  b: 1`, [{ text: 'one\ntwo\n', b: 1 }]],
  [`- text:{{ dict "x" (list 1 2) | toYaml | nindent 4 }}`, [{ text: { x: [1, 2] } }]],
  [`- {{ ${FROM('template')} | quote }}`, ['{{ fail "parsed again" }}']],
  [`- {{ ${FROM('inject')} | toRawJson }}`, ['x\nevil: "true"\n']],
  ['{{ list (dict "a" "<&>") | toJson }}', [{ a: '<&>' }]],
];

describe('object-templates-raw', () => {
  for (const [text, value] of RAW) {
    test(`${JSON.stringify(text)} is ${JSON.stringify(value)}`, () => {
      assert.deepEqual(valueOf(text), value);
    });
  }

  test('the result must be one list in YAML', () => {
    assert.match(errorOf('a: 1'), /no list of object templates/);
    assert.match(errorOf('- a\n---\n- b'), /several YAML documents/);
    assert.match(errorOf('- a: b: c'), /line 1 of the result is not valid YAML: /);
    assert.match(errorOf('- .nan'), /no infinite numbers/);
    assert.match(errorOf('{{ skipObject }}'), /leave it out with if/);
    assert.match(
      errorOf('- a:\n  b: c: {{ fromSecret "ns" "secret" "token" }}'),
      /^Error parsing object-templates-raw YAML: line 2 of the result is not valid YAML$/,
    );
  });

  test('aliases cannot make the value large', () => {
    const levels = Array.from({ length: 30 }, (_, level) => `- &a${level + 1} [*a${level}, *a${level}]`);
    assert.match(errorOf(['- &a0 x', ...levels].join('\n')), /line 19 .* stand for more than 1000000 values/);
    assert.match(errorOf('- &a [*a]'), /not valid YAML/);
  });
});

describe('look-ups', () => {
  test('are all recorded, also of objects that are missing, and when the rendering fails', () => {
    const { lookedUp, state } = resolve({
      a: '{{ lookup "v1" "ConfigMap" "ns" "none" }}{{ lookup "v1" "ConfigMap" "ns" "none" }}',
      b: '{{ lookup "v1" "Pod" "ns" "" "b=c" "a" }}',
      c: '{{ fromClusterClaim "none" }}',
    });
    assert.equal(state, 'failed');
    assert.deepEqual(lookedUp, [
      { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'ns', name: 'none', selector: '' },
      { apiVersion: 'v1', kind: 'Pod', namespace: 'ns', name: '', selector: 'a,b=c' },
      { apiVersion: CLAIM, kind: 'ClusterClaim', namespace: '', name: 'none', selector: '' },
    ]);
  });

  test('of objects that are not known yet are collected from all texts', () => {
    const result = resolve({
      a: '{{ fromConfigMap "later" "a" "x" }}{{ fromConfigMap "later" "not reached" "x" }}',
      b: { c: '{{ lookup "v1" "Pod" "later" "" }}' },
      d: '{{ fail "after all are known" }}',
    });
    assert.equal(result.state, 'unknown');
    assert.deepEqual(result.state === 'unknown' ? result.missing.map(({ kind, name }) => `${kind}/${name}`) : [], [
      'ConfigMap/a',
      'Pod/',
    ]);
    assert.equal(resolve('- {{ fromConfigMap "later" "a" "x" }}').state, 'unknown');
  });

  test('of Secrets mark the result as sensitive', () => {
    const sensitive = (template: string): boolean => resolve({ a: template }).usedSensitive;
    assert.ok(sensitive('{{ fromSecret "ns" "secret" "token" }}'));
    assert.ok(sensitive('{{ copySecretData "ns" "secret" }}'));
    assert.ok(sensitive('{{ lookup "v1" "Secret" "ns" "secret" }}'));
    assert.ok(sensitive('{{ lookup "v1" "Secret" "ns" "" }}'));
    assert.ok(!sensitive('{{ fromConfigMap "ns" "cm" "port" }}'));
  });

  test('need the permission of the gate, which sees the namespace that is meant', () => {
    const mayRead = namespaceGate('ns', 'me');
    assert.deepEqual(valueOf({ a: '{{ fromConfigMap "" "cm" "port" }}' }, { mayRead, defaultNamespace: 'ns' }), {
      a: '8080',
    });
    assert.match(
      errorOf({ a: '{{ fromConfigMap "b" "cm" "port" }}' }, { mayRead }),
      /the template may not read ConfigMap b\/cm: lookups are restricted to namespace ns/,
    );
    assert.match(
      errorOf({ a: '{{ lookup "v1" "Pod" "" "" }}' }, { mayRead }),
      /may not read the objects of kind Pod: /,
    );
    assert.deepEqual(
      resolve({ a: '{{ fromConfigMap "b" "cm" "port" }}' }, { mayRead }).lookedUp,
      [],
      'what may not be read is not watched',
    );
  });
});

describe('bounds', () => {
  const long = 'x'.repeat(100_000);
  const hostile: readonly string[] = [
    '{{ repeat 1000000000 "x" }}',
    '{{ until 1000000000 }}',
    '{{ untilStep 0 1000000000 1 }}',
    '{{ seq 1000000000 }}',
    '{{ range until 10000 }}{{ range until 10000 }}x{{ end }}{{ end }}',
    '{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}',
    `{{ $x := "${long}" }}{{ range until 100 }}{{ $x = cat $x $x }}{{ end }}`,
    `{{ $x := "${long}" }}{{ replace "x" $x $x }}`,
    `{{ $x := "${long}" }}{{ regexReplaceAll "x" $x $x }}`,
    `{{ $x := "${long}" }}{{ range until 1000 }}{{ regexMatch "(x+x+)+y" $x }}{{ end }}`,
    `{{ $x := "${long}" }}{{ $l := list }}{{ range until 5000 }}{{ $l = append $l $x }}{{ end }}{{ toJson $l }}`,
    `{{ $x := "${long}" }}{{ $l := list }}{{ range until 5000 }}{{ $l = append $l $x }}{{ end }}{{ $l }}`,
    '{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}',
    '{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x }}',
    '{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ deepEqual $x $x }}',
    '{{ $x := list 1 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}',
    '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}',
    '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}',
    '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $e := dict }}{{ $_ := set $e "d" $e }}{{ merge $d $e }}',
    '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ quote $d }}',
    '{{ range until 2000 }}{{ fromConfigMap "ns" "cm" "port" }}{{ end }}',
    '{{ "x" | indent 1000000000 }}',
    '{{ range until 1000 }}{{ printf "%99999d" 1 }}{{ end }}',
    `{{ "${'['.repeat(1000)}" | fromJson }}{{ "${'['.repeat(1000)}" | mustFromJson }}`,
    '{{ range until 1000 }}{{ dateInZone "MST" 0 "Europe/Berlin" }}{{ end }}',
    `${'x'.repeat(2_000_000)}{{ 1 }}`,
  ];
  for (const template of hostile) {
    test(`${template.slice(0, 100)} ends with an error that says so`, () => {
      const result = resolve({ a: template });
      assert.equal(result.state, 'failed');
      if (result.state === 'failed') {
        assert.ok(['template-limit', 'template-failed'].includes(result.error.code), result.error.message);
        assert.match(result.error.message, /exceeds|more than|longer than|deeper/);
      }
    });
  }

  test('a deep object is refused', () => {
    const deep = Array.from({ length: 200 }).reduce<JsonObject>((inner) => ({ a: inner }), { a: '{{ 1 }}' });
    assert.match(errorOf(deep), /nested deeper than 100 levels/);
  });

  test('limits hold for all texts of an object together', () => {
    const source = Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [`k${index}`, '{{ repeat 1000000 "x" }}']),
    );
    assert.match(errorOf(source), /exceeds 8000000 characters/);
  });
});

const PARTS = [
  '{{ ',
  ' }}',
  '{{- ',
  ' -}}',
  'if ',
  'else ',
  'end ',
  'range ',
  'with ',
  'define "t" ',
  'template "t" ',
  '. ',
  '.Object ',
  '$x ',
  ':= ',
  '| ',
  '(',
  ') ',
  '0 ',
  '-7 ',
  '1.5 ',
  '99999999 ',
  '"a" ',
  '"[1" ',
  '"ns" ',
  '"cm" ',
  '`{"a":1}` ',
  'true ',
  'nil ',
  '\n',
  "'",
  ': ',
  '- ',
  ...Array.from(GOVERNANCE_FUNCTIONS.keys(), (name) => `${name} `),
];

describe('any template', () => {
  const text = fc.array(fc.constantFrom(...PARTS), { maxLength: 25 }).map((parts) => parts.join(''));
  /** Calls that parse, with operands of all kinds. */
  const operand = fc.constantFrom(
    '1',
    '-1',
    '"a"',
    '"1.2.3"',
    'nil',
    '1.5',
    '.Object',
    '(list 1 "a" nil)',
    '(dict "a" 1)',
    'true',
    '(lookup "v1" "ConfigMap" "ns" "")',
  );
  const call = fc
    .tuple(fc.constantFrom(...GOVERNANCE_FUNCTIONS.keys()), fc.array(operand, { maxLength: 4 }))
    .map(([name, operands]) => `{{ ${[name, ...operands].join(' ')} }}`);
  const context = { Object: { a: [1, 'x', { b: null }] } };

  function check(source: JsonObject | string): void {
    const result = resolve(source, { context });
    if (result.state === 'failed') {
      assert.ok(result.error instanceof TemplateError, String(result.error));
    } else if (result.state === 'resolved') {
      assert.ok(JSON.stringify(result.value).length < 20_000_000);
    }
  }

  test('has a result, and throws nothing', () => {
    fc.assert(
      fc.property(text, (template) => {
        check({ a: template });
        check(template);
      }),
      { numRuns: 1000 },
    );
  });

  test('that calls a function has a result, whatever the operands', () => {
    fc.assert(
      fc.property(call, (template) => check({ a: template })),
      { numRuns: 3000 },
    );
  });

  test('without actions is left as it is', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        fc.pre(!value.includes('{{'));
        assert.deepEqual(valueOf({ a: value }), { a: value });
        assert.ok(!hasTemplates({ a: value }));
      }),
    );
  });

  test('has the values of the cluster unchanged, whatever they are', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('', 'x: ', "'", '\n  '), (value, before) => {
        const objects: TemplateObjects = {
          ...CLUSTER,
          get: () => ({ state: 'found', object: { data: { k: value } } }),
        };
        const template = `${before}{{ fromConfigMap "a" "b" "k" }}`;
        const source = { a: { b: template, c: '{{ copyConfigMapData "a" "b" }}' }, z: 1 };
        assert.deepEqual(valueOf(source, { objects }), { a: { b: before + value, c: { k: value } }, z: 1 });
        assert.deepEqual(valueOf('- {{ fromConfigMap "a" "b" "k" | toJson }}', { objects }), [value]);
      }),
    );
  });
});
