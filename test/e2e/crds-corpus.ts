// The kinds and objects of the differential test of schemas: kinds with every keyword, valid objects and invalid ones.
import type { OwnKind, Schema } from '../../src/resources/index.ts';

/** An object to create, or to update another object to. */
export interface ObjectCase {
  readonly name: string;
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Fields besides `metadata`, `spec` and `status`. */
  readonly more?: Readonly<Record<string, unknown>>;
  /** The `spec` before the update. Absent: the object is created. */
  readonly before?: unknown;
}

const text: Schema = { type: 'string' };

/** A schema with every keyword that CustomResourceDefinitions support. */
export const KEYWORDS_SCHEMA: Schema = {
  type: 'object',
  required: ['spec'],
  properties: {
    metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 40, pattern: '^[a-z0-9.-]*$' } } },
    spec: {
      type: 'object',
      properties: {
        text: { type: 'string', minLength: 2, maxLength: 5, pattern: '^[a-z]+$' },
        count: { type: 'integer', minimum: 2, maximum: 10, multipleOf: 2 },
        open: { type: 'integer', minimum: 2, exclusiveMinimum: true, maximum: 10, exclusiveMaximum: true },
        ratio: { type: 'number', minimum: 0.5, maximum: 2.5, multipleOf: 0.25 },
        big: { type: 'number', maximum: 1e30 },
        flag: { type: 'boolean' },
        mode: { type: 'string', enum: ['a', 'b"c'] },
        level: { type: 'integer', enum: [1, 2] },
        free: { type: 'object', nullable: true, 'x-kubernetes-preserve-unknown-fields': true },
        port: { 'x-kubernetes-int-or-string': true },
        portPattern: {
          'x-kubernetes-int-or-string': true,
          anyOf: [{ type: 'integer' }, { type: 'string' }],
          pattern: '^[0-9]+%?$',
        },
        list: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', maxLength: 3 } },
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
        map: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: text, size: { type: 'integer', default: 1, maximum: 5 } },
          },
        },
        pairs: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name', 'port'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: text, port: { type: 'integer', default: 80 } },
          },
        },
        entries: {
          type: 'object',
          minProperties: 1,
          maxProperties: 2,
          additionalProperties: { type: 'integer', maximum: 5 },
        },
        typed: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { a: { type: 'object' } } },
        pod: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          'x-kubernetes-preserve-unknown-fields': true,
        },
        any: {
          type: 'object',
          properties: { a: text, b: text, c: { type: 'integer' } },
          anyOf: [{ required: ['a'] }, { required: ['b'], properties: { b: { minLength: 3 } } }],
        },
        one: {
          type: 'object',
          properties: { a: text, b: text },
          oneOf: [{ required: ['a'] }, { required: ['b'] }],
        },
        all: {
          type: 'string',
          allOf: [{ minLength: 3 }, { pattern: '^x' }],
        },
        none: { type: 'string', not: { enum: ['bad'] } },
        defaults: {
          type: 'object',
          default: { a: 'given' },
          properties: { a: { type: 'string', default: 'inner' }, b: { type: 'integer', default: 3 } },
        },
        nullableText: { type: 'string', nullable: true, default: 'd' },
        formats: {
          type: 'object',
          properties: Object.fromEntries(
            [
              'date',
              'date-time',
              'duration',
              'email',
              'hostname',
              'ipv4',
              'ipv6',
              'cidr',
              'mac',
              'uuid',
              'uuid3',
              'uuid4',
              'uuid5',
              'uri',
              'byte',
              'isbn',
              'isbn10',
              'isbn13',
              'creditcard',
              'ssn',
              'hexcolor',
              'rgbcolor',
              'bsonobjectid',
              'password',
              'k8s-short-name',
              'k8s-long-name',
              'int32',
              'nonsense',
            ].map((format) => [format, { type: 'string', format }]),
          ),
        },
      },
    },
    status: { type: 'object', properties: { replicas: { type: 'integer' } } },
  },
};

/** A schema with all kinds of CEL rules. */
export const RULES_SCHEMA: Schema = {
  type: 'object',
  'x-kubernetes-validations': [{ rule: "self.metadata.name != 'forbidden'", message: 'may not be called forbidden' }],
  properties: {
    spec: {
      type: 'object',
      'x-kubernetes-validations': [
        { rule: '!has(self.least) || !has(self.most) || self.least <= self.most', fieldPath: '.least' },
        {
          rule: '!has(self.a) || !has(self.b)',
          message: 'a and b exclude each other',
          reason: 'FieldValueForbidden',
          fieldPath: '.b',
        },
        { rule: "!has(self.a) || self.a != 'req'", reason: 'FieldValueRequired', message: 'needed' },
        { rule: "!has(self.a) || self.a != 'dup'", reason: 'FieldValueDuplicate', message: 'twice' },
        { rule: "!has(self.a) || self.a != 'msg'", messageExpression: "'a is ' + self.a + ', not ' + self.c.x" },
        {
          rule: '!has(self.fixed) || !has(oldSelf.fixed) || self.fixed == oldSelf.fixed',
          message: 'fixed is immutable',
        },
        {
          rule: '!has(self.unset) || oldSelf.hasValue()',
          optionalOldSelf: true,
          message: 'unset must not be there at first',
        },
        { rule: "!has(self.a) || self.a != 'key' || self.c.x == ''", message: 'never' },
        { rule: "!has(self.a) || self.a != 'int' || self.port > 3", message: 'port' },
      ],
      properties: {
        least: { type: 'integer' },
        most: { type: 'integer' },
        a: { type: 'string', maxLength: 20 },
        b: text,
        c: { type: 'object', properties: { x: { type: 'string', maxLength: 20 } } },
        fixed: { type: 'string', maxLength: 20 },
        unset: text,
        port: { 'x-kubernetes-int-or-string': true },
        immutable: {
          type: 'string',
          'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'is immutable' }],
        },
        set: {
          type: 'array',
          maxItems: 10,
          'x-kubernetes-list-type': 'set',
          items: { type: 'string', maxLength: 10 },
          'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'set is immutable' }],
        },
        items: {
          type: 'array',
          maxItems: 10,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string', maxLength: 20 }, size: { type: 'integer' } },
            'x-kubernetes-validations': [
              { rule: 'self.size >= oldSelf.size', message: 'shrinks' },
              { rule: 'self.size < 100', message: 'too large', fieldPath: '.size' },
            ],
          },
        },
        byName: {
          type: 'object',
          maxProperties: 10,
          additionalProperties: {
            type: 'object',
            properties: { size: { type: 'integer' } },
            'x-kubernetes-validations': [{ rule: 'self.size != 3', message: 'not three' }],
          },
        },
        when: {
          type: 'object',
          properties: {
            at: { type: 'string', format: 'date-time' },
            day: { type: 'string', format: 'date' },
            span: { type: 'string', format: 'duration' },
            data: { type: 'string', format: 'byte', maxLength: 20 },
            weight: { type: 'number' },
          },
          'x-kubernetes-validations': [
            { rule: "!has(self.at) || self.at < timestamp('2030-01-01T00:00:00Z')", message: 'at is late' },
            { rule: '!has(self.day) || self.day.getFullYear() < 2030', message: 'day is late' },
            { rule: "!has(self.span) || self.span <= duration('1h')", message: 'span is long' },
            { rule: '!has(self.data) || size(self.data) < 5', message: 'data is long' },
            { rule: '!has(self.weight) || self.weight / 2.0 < 2.0', message: 'weight is heavy' },
          ],
        },
        'odd-name': { type: 'integer' },
        namespace: { type: 'integer' },
        escaped: {
          type: 'object',
          properties: { 'a-b': { type: 'integer' }, namespace: { type: 'integer' }, 'x.y/z': { type: 'integer' } },
          'x-kubernetes-validations': [
            { rule: '!has(self.a__dash__b) || self.a__dash__b < 3', message: 'a-b' },
            { rule: '!has(self.__namespace__) || self.__namespace__ < 3', message: 'namespace' },
            { rule: '!has(self.x__dot__y__slash__z) || self.x__dot__y__slash__z < 3', message: 'x.y/z' },
          ],
        },
        pod: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          properties: { spec: { type: 'object', properties: { a: text } } },
          'x-kubernetes-validations': [
            { rule: "self.kind == 'Pod' && self.metadata.name.startsWith('p')", message: 'no pod' },
          ],
        },
      },
    },
  },
};

const formatValues: Readonly<Record<string, readonly [right: readonly string[], wrong: readonly string[]]>> = {
  date: [
    ['2024-02-29', '0001-01-01'],
    ['2023-02-29', '2024-13-01', 'x', '24-01-01', '2024-1-1', ''],
  ],
  'date-time': [
    ['2024-02-29T23:59:59Z', '2024-01-01t00:00:00.123456789+01:00'],
    [
      '2024-02-30T00:00:00Z',
      '2024-01-01 00:00:00Z',
      '2024-01-01T24:00:00Z',
      '2024-01-01T00:60:00Z',
      '2024-01-01T00:00:00',
    ],
  ],
  duration: [
    ['1h', '1h30m', '-2.5s', '3 days', '2 weeks', '0', '5 ms'],
    ['x', '', '1', 'abc 1'],
  ],
  email: [
    ['a@b.c', 'A B <a@b>', 'a.b+c@example.com', '"a b"@c.d'],
    ['a', '@b', 'a@', 'a@b@c', 'a b@c', '<a@b', 'a@b,c@d'],
  ],
  hostname: [
    ['a', 'example.com', 'a-b.example.com', '1a.com', 'xn--a.com'],
    ['', '-a.com', 'a_b.com', 'a..com', 'a.b.1', 'a.c', 'a b'],
  ],
  ipv4: [
    ['1.2.3.4', '01.02.03.04', '::ffff:1.2.3.4'],
    ['1.2.3', '256.1.1.1', '::1', 'a', ''],
  ],
  ipv6: [
    ['::1', 'fe80::1', '::ffff:1.2.3.4'],
    ['1.2.3.4', ':::1', 'fe80::1%eth0', 'x'],
  ],
  cidr: [
    ['10.0.0.0/8', 'fe80::/10', '010.0.0.0/8', '10.1.2.3/8'],
    ['10.0.0.0', '10.0.0.0/33', 'a/8', '10.0.0.0/', '10.0.0.0/8/8'],
  ],
  mac: [
    ['00:00:5e:00:53:01', '02-00-5e-10-00-00-00-01', '0000.5e00.5301'],
    ['00:00:5e:00:53', '00:00:5e-00:53:01', 'x', '00:00:5g:00:53:01'],
  ],
  uuid: [
    ['01234567-89ab-cdef-0123-456789abcdef', '0123456789ABCDEF0123456789abcdef'],
    ['01234567-89ab-cdef-0123', 'x'],
  ],
  uuid3: [['01234567-89ab-3def-0123-456789abcdef'], ['01234567-89ab-4def-0123-456789abcdef']],
  uuid4: [['01234567-89ab-4def-8123-456789abcdef'], ['01234567-89ab-4def-0123-456789abcdef']],
  uuid5: [['01234567-89ab-5def-a123-456789abcdef'], ['01234567-89ab-4def-a123-456789abcdef']],
  uri: [
    ['http://a.b/c?d#e', '/a/b', 'urn:a:b', 'https://[::1]:80/', 'mailto:a@b'],
    ['', 'a', 'a/b', 'http://a b', '://a', 'http://[::1', 'http://a:b/'],
  ],
  byte: [
    ['YQ==', 'YWI=', 'YWJj'],
    ['', 'a', 'YQ=', 'Y-Q=', 'YQ==\n'],
  ],
  isbn: [
    ['0321751043', '978-0321751041'],
    ['1', '0321751044'],
  ],
  isbn10: [
    ['0321751043', '0-321-75104-3', '080442957X'],
    ['978-0321751041', '080442957x'],
  ],
  isbn13: [
    ['978-0321751041', '9780321751041'],
    ['0321751043', '9780321751042'],
  ],
  creditcard: [
    ['4111111111111111', '4111-1111-1111-1111', '378282246310005'],
    ['4111111111111112', '1', ''],
  ],
  ssn: [
    ['111-11-1111', '111 11 1111'],
    ['111111111', '11-111-1111', ''],
  ],
  hexcolor: [
    ['#fff', 'FFFFFF'],
    ['#ffff', 'red', ''],
  ],
  rgbcolor: [
    ['rgb(0,128,255)', 'rgb( 1 , 2 , 3 )'],
    ['rgb(256,0,0)', 'rgb(01,0,0)', 'rgb(0,0)', ''],
  ],
  bsonobjectid: [['507f1f77bcf86cd799439011'], ['507f1f77bcf86cd79943901', 'z07f1f77bcf86cd799439011']],
  password: [['x', ''], []],
  'k8s-short-name': [
    ['a', 'a-b'],
    ['A', '-a', 'a.b', 'a'.repeat(64), ''],
  ],
  'k8s-long-name': [
    ['a.b', 'a'.repeat(100)],
    ['A', 'a..b', 'a_b', ''],
  ],
  int32: [['x'], []],
  nonsense: [['x'], []],
};

const formatCases: readonly ObjectCase[] = Object.entries(formatValues).flatMap(([format, [right, wrong]]) => [
  ...right.map((value) => ({ name: `${format} ${JSON.stringify(value)}`, spec: { formats: { [format]: value } } })),
  ...wrong.map((value) => ({ name: `${format} not ${JSON.stringify(value)}`, spec: { formats: { [format]: value } } })),
]);

const label = 'a'.repeat(64);

export const KEYWORDS_CASES: readonly ObjectCase[] = [
  {
    name: 'everything right',
    spec: { text: 'abc', count: 4, ratio: 0.75, flag: true, mode: 'a', level: 1, list: ['a'] },
  },
  { name: 'no spec' },
  { name: 'spec of another type', spec: 'x' },
  { name: 'null spec', spec: null },
  { name: 'text too short', spec: { text: 'a' } },
  { name: 'text too long', spec: { text: 'abcdef' } },
  { name: 'text of another pattern', spec: { text: 'AB"' } },
  { name: 'text of many bytes', spec: { text: 'äöü', all: 'x' } },
  { name: 'number for text', spec: { text: 5 } },
  { name: 'text for a number', spec: { count: '5' } },
  { name: 'fraction for an integer', spec: { count: 2.5 } },
  { name: 'count too small', spec: { count: 0 } },
  { name: 'count too large', spec: { count: 12 } },
  { name: 'count not a multiple', spec: { count: 3 } },
  { name: 'exclusive bounds', spec: { open: 2 } },
  { name: 'exclusive upper bound', spec: { open: 10 } },
  { name: 'ratio too small', spec: { ratio: 0.25 } },
  { name: 'ratio too large', spec: { ratio: 2.75 } },
  { name: 'ratio not a multiple', spec: { ratio: 0.6 } },
  { name: 'large numbers', spec: { big: 1.5e31 } },
  { name: 'text for a flag', spec: { flag: 'true' } },
  { name: 'not in enum', spec: { mode: 'c' } },
  { name: 'not in enum of integers', spec: { level: 3 } },
  { name: 'list for an enum', spec: { mode: ['a'] } },
  { name: 'null where it may be', spec: { free: null } },
  { name: 'free object', spec: { free: { a: { b: [1, null] } } } },
  { name: 'free list', spec: { free: [] } },
  { name: 'int or string: int', spec: { port: 80, portPattern: 5 } },
  { name: 'int or string: string', spec: { port: 'http', portPattern: '5%' } },
  { name: 'int or string: bool', spec: { port: true, portPattern: false } },
  { name: 'int or string: fraction', spec: { port: 1.5 } },
  { name: 'int or string: pattern', spec: { portPattern: 'x' } },
  { name: 'list too short', spec: { list: [] } },
  { name: 'list too long', spec: { list: ['a', 'b', 'c', 'd'] } },
  { name: 'elements too long', spec: { list: ['abcd', 'a', 'efgh'] } },
  { name: 'object for a list', spec: { list: {} } },
  { name: 'null elements', spec: { list: ['a', null] } },
  { name: 'set with duplicates', spec: { set: ['a', 'b', 'a', 'a', 'b'] } },
  { name: 'map with duplicates', spec: { map: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] } },
  { name: 'map without keys', spec: { map: [{}, { size: 2 }] } },
  { name: 'map with texts', spec: { map: ['a'] } },
  { name: 'pairs with duplicates', spec: { pairs: [{ name: 'a' }, { name: 'a', port: 80 }, { name: 'a', port: 81 }] } },
  { name: 'too few entries', spec: { entries: {} } },
  { name: 'too many entries', spec: { entries: { a: 1, b: 2, c: 9 } } },
  { name: 'entry of another type', spec: { entries: { 'a.b/c': 'x' } } },
  { name: 'known field in an open object', spec: { typed: { a: { b: 1 }, c: { d: 1 } } } },
  { name: 'embedded pod', spec: { pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', odd: 1 }, x: 1 } } },
  { name: 'embedded nothing', spec: { pod: {} } },
  {
    name: 'embedded with bad names',
    spec: { pod: { apiVersion: 'a/b/c', kind: 'Po_d', metadata: { labels: { [label]: '' } } } },
  },
  { name: 'embedded with empty names', spec: { pod: { apiVersion: '', kind: '' } } },
  { name: 'anyOf: first', spec: { any: { a: 'x' } } },
  { name: 'anyOf: second', spec: { any: { b: 'xxx' } } },
  { name: 'anyOf: none', spec: { any: { c: 1 } } },
  { name: 'anyOf: nearly', spec: { any: { b: 'x' } } },
  { name: 'oneOf: none', spec: { one: {} } },
  { name: 'oneOf: both', spec: { one: { a: '', b: '' } } },
  { name: 'oneOf: one', spec: { one: { a: '' } } },
  { name: 'allOf: one', spec: { all: 'abc' } },
  { name: 'allOf: none', spec: { all: 'a' } },
  { name: 'not', spec: { none: 'bad' } },
  { name: 'defaults: partly given', spec: { defaults: { b: 5 }, map: [{ name: 'a' }] } },
  { name: 'defaults: null', spec: { defaults: null, nullableText: null } },
  { name: 'defaults: null within', spec: { defaults: { a: null, b: null } } },
  {
    name: 'unknown fields',
    spec: { what: 1, map: [{ name: 'a', b: { c: 1 } }], defaults: { z: [] } },
    more: { top: 1 },
  },
  {
    name: 'names of objects as fields',
    spec: JSON.parse('{"__proto__":{"a":1},"constructor":1,"entries":{"__proto__":9}}'),
  },
  { name: 'status is left out', spec: {}, status: { replicas: 3 } },
  { name: 'name with upper case', spec: {}, metadata: { name: 'Upper' } },
  { name: 'name too long', spec: {}, metadata: { name: 'a'.repeat(254) } },
  { name: 'name restricted by the schema', spec: {}, metadata: { name: 'a'.repeat(50) } },
  { name: 'name with a slash', spec: {}, metadata: { name: 'a/b' } },
  { name: 'no name', spec: {}, metadata: { name: '' } },
  {
    name: 'labels',
    spec: {},
    metadata: { labels: { 'a b': 'ok', [label]: 'ok', 'a/b/c': 'x', 'A!/b': 'x', ok: 'not ok', long: label } },
  },
  { name: 'annotations', spec: {}, metadata: { annotations: { 'a b': '', 'UPPER/a': 'x', '/a': '' } } },
  { name: 'large annotations', spec: {}, metadata: { annotations: { a: 'x'.repeat(256 * 1024) } } },
  { name: 'finalizers', spec: {}, metadata: { finalizers: ['a b', 'example.com/ok', 'orphan', 'foregroundDeletion'] } },
  {
    name: 'owners',
    spec: {},
    metadata: {
      ownerReferences: [
        { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: '1', controller: true },
        { apiVersion: 'v1', kind: 'Pod', name: 'b', uid: '2', controller: true },
        { apiVersion: '', kind: '', name: '', uid: '' },
        { apiVersion: 'v1', kind: 'Event', name: 'a', uid: '1' },
      ],
    },
  },
  { name: 'generateName that is none', spec: {}, metadata: { name: 'ok', generateName: 'A_' } },
  { name: 'unknown metadata', spec: {}, metadata: { name: 'ok', strange: 1 } },
  { name: 'update: unchanged is forgiven', before: { text: 'abc' }, spec: { text: 'abc', flag: true } },
  ...formatCases,
];

export const RULES_CASES: readonly ObjectCase[] = [
  { name: 'nothing', spec: {} },
  { name: 'rule of the whole', spec: {}, metadata: { name: 'forbidden' } },
  { name: 'field path', spec: { least: 2, most: 1 } },
  { name: 'reason Forbidden', spec: { a: 'x', b: 'y' } },
  { name: 'reason Required', spec: { a: 'req' } },
  { name: 'reason Duplicate', spec: { a: 'dup' } },
  { name: 'message expression', spec: { a: 'msg', c: { x: 'there' } } },
  { name: 'message expression that fails', spec: { a: 'msg' } },
  { name: 'rule that fails', spec: { a: 'key' } },
  { name: 'rule without an overload', spec: { a: 'int', port: 'http' } },
  { name: 'rule with an overload', spec: { a: 'int', port: 2 } },
  { name: 'optional old value: none', spec: { unset: 'x' } },
  { name: 'optional old value: some', before: {}, spec: { unset: 'x' } },
  { name: 'transition without old value', before: {}, spec: { immutable: 'a', fixed: 'a' } },
  { name: 'transition', before: { immutable: 'a', fixed: 'a' }, spec: { immutable: 'b', fixed: 'b' } },
  { name: 'transition to the same', before: { immutable: 'a', fixed: 'a' }, spec: { immutable: 'a', fixed: 'a' } },
  { name: 'sets in another order', before: { set: ['a', 'b'] }, spec: { set: ['b', 'a'] } },
  { name: 'other sets', before: { set: ['a', 'b'] }, spec: { set: ['b', 'c'] } },
  {
    name: 'elements by key',
    before: {
      items: [
        { name: 'a', size: 4 },
        { name: 'b', size: 2 },
      ],
    },
    spec: {
      items: [
        { name: 'b', size: 1 },
        { name: 'a', size: 5 },
        { name: 'c', size: 100 },
      ],
    },
  },
  { name: 'entries', spec: { byName: { a: { size: 3 }, b: { size: 4 } } } },
  {
    name: 'times right',
    spec: { when: { at: '2024-01-01T00:00:00.5Z', day: '2024-01-01', span: '30m', data: 'YQ==', weight: 3 } },
  },
  {
    name: 'times wrong',
    spec: { when: { at: '2034-01-01T00:00:00Z', day: '2034-01-01', span: '2h', data: 'YWJjZGVm', weight: 4 } },
  },
  { name: 'escaped names', spec: { escaped: { 'a-b': 3, namespace: 3, 'x.y/z': 3 } } },
  { name: 'embedded', spec: { pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } } } },
  { name: 'other embedded', spec: { pod: { apiVersion: 'v1', kind: 'Job', metadata: { name: 'p' } } } },
  { name: 'not run on what is of another type', spec: { least: 'a', a: 'req' } },
  {
    name: 'unchanged is forgiven',
    before: { byName: { a: { size: 4 } } },
    spec: { byName: { a: { size: 4 }, b: { size: 3 } } },
  },
];

const rules = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];
const single = { module: 'builtin:pod-security', mutating: false, rules };
const member = { module: 'builtin:cel' };
const group = { expression: 'a()', message: 'no', policies: { a: member }, rules };

const clusterPolicyCases: readonly ObjectCase[] = [
  { name: 'least', spec: single },
  { name: 'nothing', spec: {} },
  { name: 'settings', spec: { ...single, settings: { a: { b: [null] } } } },
  { name: 'null settings', spec: { ...single, settings: null } },
  { name: 'settings that are a list', spec: { ...single, settings: [] } },
  { name: 'no rules', spec: { ...single, rules: [] } },
  {
    name: 'an operation that is none',
    spec: { ...single, rules: [{ ...rules[0], operations: ['GET'], scope: 'All' }] },
  },
  { name: 'empty rules', spec: { ...single, rules: [{}] } },
  { name: 'a mode that is none', spec: { ...single, mode: 'off', failurePolicy: 'Maybe', matchPolicy: 'x' } },
  { name: 'times', spec: { ...single, timeoutSeconds: 1, timeoutEvalSeconds: 31 } },
  { name: 'evaluation longer than the request', spec: { ...single, timeoutSeconds: 5, timeoutEvalSeconds: 6 } },
  {
    name: 'conditions twice',
    spec: {
      ...single,
      matchConditions: [
        { name: 'a', expression: 'true' },
        { name: 'a', expression: 'x' },
      ],
    },
  },
  {
    name: 'too many conditions',
    spec: { ...single, matchConditions: Array.from({ length: 65 }, (_, n) => ({ name: `c${n}`, expression: 'true' })) },
  },
  { name: 'context', spec: { ...single, contextAwareResources: [{ apiVersion: 'v1' }, { kind: '' }] } },
  {
    name: 'selector',
    spec: { ...single, namespaceSelector: { matchExpressions: [{ key: 'a' }], matchLabels: { a: 1 } } },
  },
  { name: 'another server', before: single, spec: { ...single, policyServer: 'b' } },
  { name: 'weaker', before: single, spec: { ...single, mode: 'monitor' } },
  { name: 'stronger', before: { ...single, mode: 'monitor' }, spec: single },
  { name: 'unknown', spec: { ...single, modul: 'x' } },
  { name: 'null', spec: { ...single, mode: null, policyServer: null } },
];

const namespacedCases = (spec: object): readonly ObjectCase[] => [
  { name: 'wildcards', spec: { ...spec, rules: [{ ...rules[0], apiGroups: ['*'], resources: ['*'] }] } },
  {
    name: 'reports',
    spec: { ...spec, rules: [{ ...rules[0], apiGroups: ['wgpolicyk8s.io'], resources: ['policyreports'] }] },
  },
  { name: 'cluster scope', spec: { ...spec, rules: [{ ...rules[0], scope: 'Cluster' }] } },
  { name: 'no such field', spec: { ...spec, namespaceSelector: {} } },
];

const groupCases: readonly ObjectCase[] = [
  { name: 'least', spec: group },
  { name: 'nothing', spec: {} },
  { name: 'no members', spec: { ...group, policies: {} } },
  { name: 'names', spec: { ...group, policies: { 'a-b': member, in: member, __proto: member } } },
  { name: 'a member without a module', spec: { ...group, policies: { a: {} } } },
  {
    name: 'times',
    spec: { ...group, policies: { a: { ...member, timeoutEvalSeconds: 6 }, b: { ...member, timeoutEvalSeconds: 5 } } },
  },
  {
    name: 'context of a member',
    spec: { ...group, policies: { a: { ...member, contextAwareResources: [{ apiVersion: 'v1', kind: 'Pod' }] } } },
  },
];

const server = { image: 'a', replicas: 1 };

const CASES_BY_KIND: Readonly<Record<string, readonly ObjectCase[]>> = {
  ClusterAdmissionPolicy: clusterPolicyCases,
  AdmissionPolicy: [{ name: 'least', spec: single }, ...namespacedCases(single)],
  ClusterAdmissionPolicyGroup: groupCases,
  AdmissionPolicyGroup: [...groupCases, ...namespacedCases(group)],
  PolicyServer: [
    { name: 'least', spec: server },
    { name: 'nothing', spec: {} },
    { name: 'long name', metadata: { name: 'a'.repeat(64) }, spec: server },
    { name: 'both', spec: { ...server, minAvailable: 1, maxUnavailable: '50%' } },
    { name: 'one', spec: { ...server, minAvailable: '50%', limits: { cpu: 1, memory: '1Gi' } } },
    { name: 'quantities', spec: { ...server, limits: { cpu: 'many' }, requests: { cpu: true } } },
    { name: 'ports', spec: { ...server, webhookPort: 0, metricsPort: 65_536, replicas: -1 } },
    {
      name: 'variables twice',
      spec: { ...server, env: [{ name: 'A' }, { name: 'A', value: 'x', valueFrom: { a: 1 } }] },
    },
  ],
  PolicyRevision: [{ name: 'nothing', spec: {} }],
  PolicyServerReplica: [
    { name: 'nothing', spec: {} },
    { name: 'least', spec: { policyServer: 'a' } },
  ],
  Policy: [
    { name: 'nothing', spec: {} },
    { name: 'least', spec: { disabled: false, 'policy-templates': [] } },
    ...[
      { namespace: 'a' },
      { kind: 'ConfigurationPolicy', namespace: 'a' },
      { kind: 'ConfigurationPolicy', namespace: '' },
      { kind: 'CertificatePolicy', namespace: 'a' },
      { compliance: 'compliant' },
    ].map((fields): ObjectCase => {
      const dependency = { apiVersion: 'v1', kind: 'Policy', name: 'a', compliance: 'Compliant', ...fields };
      const template = { objectDefinition: { kind: 'A', list: [1, '1', null] }, extraDependencies: [dependency] };
      return {
        name: `dependency ${JSON.stringify(fields)}`,
        spec: { disabled: true, dependencies: [dependency], 'policy-templates': [template], other: 1 },
      };
    }),
  ],
  PolicySet: [
    { name: 'nothing', spec: {} },
    { name: 'least', spec: { policies: [] } },
    { name: 'empty names', spec: { policies: [''], exclusions: [{ policyName: '', clusterNames: [] }] } },
  ],
  ConfigurationPolicy: [
    { name: 'nothing', spec: {} },
    { name: 'raw', spec: { 'object-templates-raw': '' } },
    { name: 'both', spec: { 'object-templates': [], 'object-templates-raw': '' } },
    { name: 'null', spec: { 'object-templates': null, 'object-templates-raw': '' } },
    {
      name: 'intervals',
      spec: { 'object-templates': [], evaluationInterval: { compliant: '1d', noncompliant: '1h30m' } },
    },
    {
      name: 'spellings',
      spec: {
        'object-templates': ['MustHave', 'Mustonlyhave', 'mustNotHave'].map((complianceType) => ({
          complianceType,
          objectDefinition: { metadata: { creationTimestamp: null }, a: null },
          objectSelector: {},
        })),
      },
    },
  ],
  CertificatePolicy: [
    { name: 'nothing', spec: {} },
    { name: 'durations', spec: { minimumDuration: '300h', maximumDuration: '1d', minimumCADuration: '1.5h' } },
    { name: 'patterns', spec: { allowedSANPattern: '', disallowedSANPattern: '(' } },
  ],
};

/** Objects of one of our own kinds: its example, and objects that its rules accept or reject. */
export function ownCases(kind: OwnKind): readonly ObjectCase[] {
  const { spec } = kind.declaration.example;
  return [{ name: 'the example', spec }, ...(CASES_BY_KIND[kind.kind] ?? [])];
}

/** A difference from a valid CustomResourceDefinition. */
interface DefinitionCase {
  readonly spec?: object;
  readonly version?: object;
  readonly schema?: object;
  readonly metadata?: object;
}

const ofSpec = (spec: object): DefinitionCase => ({ schema: { type: 'object', properties: { spec } } });
const rule = (
  given: object,
  spec: object = { type: 'object', properties: { a: { type: 'string' } } },
): DefinitionCase => ofSpec({ ...spec, 'x-kubernetes-validations': [given] });

/** CustomResourceDefinitions with one error each, and some valid ones. */
export const DEFINITION_CASES: readonly (readonly [name: string, given: DefinitionCase])[] = [
  ['right', {}],
  ['name', { metadata: { name: 'other.test.example.com' } }],
  ['group', { spec: { group: 'example' } }],
  ['no group', { spec: { group: '' } }],
  ['group that is none', { spec: { group: 'A.B' } }],
  ['scope', { spec: { scope: 'Everywhere' } }],
  [
    'names',
    {
      spec: {
        names: { plural: 'wrongs', singular: 'A', kind: 'a_b', listKind: 'a_b', shortNames: ['A'], categories: ['-'] },
      },
    },
  ],
  ['no kind', { spec: { names: { plural: 'wrongs' } } }],
  ['no storage version', { version: { storage: false } }],
  ['version name', { version: { name: 'V1' } }],
  ['no schema', { version: { schema: {} } }],
  [
    'columns',
    {
      version: {
        additionalPrinterColumns: [
          { name: 'a', type: 'text', jsonPath: 'x' },
          { name: 'b', type: 'date', jsonPath: '.a', format: 'z' },
        ],
      },
    },
  ],
  [
    'scale',
    {
      version: {
        subresources: { scale: { specReplicasPath: '.a', statusReplicasPath: 'status.b', labelSelectorPath: '.x' } },
      },
    },
  ],
  ['preserve', { spec: { preserveUnknownFields: true } }],
  ['conversion', { spec: { conversion: { strategy: 'Webhook' } } }],
  ['conversion that is none', { spec: { conversion: { strategy: 'Magic' } } }],
  ['root of another type', { schema: { type: 'string' }, version: { subresources: {} } }],
  ['root without a type', { schema: {}, version: { subresources: {} } }],
  [
    'root with additionalProperties',
    { schema: { type: 'object', additionalProperties: { type: 'string' } }, version: { subresources: {} } },
  ],
  ['root nullable', { schema: { type: 'object', nullable: true }, version: { subresources: {} } }],
  [
    'metadata',
    {
      schema: {
        type: 'object',
        properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
      },
    },
  ],
  [
    'metadata names',
    {
      schema: {
        type: 'object',
        properties: { metadata: { type: 'object', properties: { name: { type: 'string' } } } },
      },
    },
  ],
  ['kind', { schema: { type: 'object', properties: { kind: { type: 'integer' }, apiVersion: { type: 'string' } } } }],
  ['no type', ofSpec({})],
  ['no type of elements', ofSpec({ type: 'array', items: {} })],
  ['no elements', ofSpec({ type: 'array' })],
  ['pattern', ofSpec({ type: 'string', pattern: '[' })],
  ['unique items', ofSpec({ type: 'array', items: { type: 'string' }, uniqueItems: true })],
  [
    'type in anyOf',
    ofSpec({ type: 'object', anyOf: [{ type: 'object', description: 'x', default: {}, nullable: true }] }),
  ],
  [
    'field only in anyOf',
    ofSpec({ type: 'object', anyOf: [{ properties: { a: { minLength: 1 } } }], not: { properties: { b: {} } } }),
  ],
  [
    'elements only in allOf',
    ofSpec({ type: 'array', items: { type: 'string' }, allOf: [{ items: { properties: { a: {} } } }] }),
  ],
  ['int or string', ofSpec({ 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] })],
  [
    'int or string in allOf',
    ofSpec({ 'x-kubernetes-int-or-string': true, allOf: [{ anyOf: [{ type: 'integer' }, { type: 'string' }] }] }),
  ],
  [
    'int or string and more',
    ofSpec({ 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true }),
  ],
  [
    'properties and additionalProperties',
    ofSpec({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } }),
  ],
  ['additionalProperties without a type', ofSpec({ type: 'object', additionalProperties: {} })],
  ['embedded', ofSpec({ type: 'object', 'x-kubernetes-embedded-resource': true })],
  [
    'embedded text',
    ofSpec({ type: 'string', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true }),
  ],
  [
    'set of objects',
    ofSpec({ type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'object', nullable: true } }),
  ],
  ['list type that is none', ofSpec({ type: 'array', 'x-kubernetes-list-type': 'bag', items: { type: 'string' } })],
  ['list type of an object', ofSpec({ type: 'object', 'x-kubernetes-list-type': 'set' })],
  ['map without keys', ofSpec({ type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } })],
  [
    'map of texts',
    ofSpec({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a'],
      items: { type: 'string' },
    }),
  ],
  [
    'map with odd keys',
    ofSpec({
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a', 'b', 'a', 'c'],
      items: {
        type: 'object',
        required: ['b'],
        properties: { a: { type: 'string', nullable: true }, b: { type: 'object' } },
      },
    }),
  ],
  [
    'keys without a map',
    ofSpec({
      type: 'array',
      'x-kubernetes-list-map-keys': ['a'],
      items: { type: 'object', properties: { a: { type: 'string' } } },
    }),
  ],
  ['map type', ofSpec({ type: 'string', 'x-kubernetes-map-type': 'loose' })],
  ['default of another type', ofSpec({ type: 'object', properties: { a: { type: 'integer', default: 'x' } } })],
  [
    'default out of bounds',
    ofSpec({ type: 'object', properties: { a: { type: 'string', default: 'xx', maxLength: 1 } } }),
  ],
  [
    'default in metadata',
    {
      schema: {
        type: 'object',
        properties: { metadata: { type: 'object', properties: { name: { type: 'string', default: 'a' } } } },
      },
    },
  ],
  ['rule that does not check', rule({ rule: 'self.b == 1' })],
  ['rule that is no bool', rule({ rule: '1' })],
  ['empty rule', rule({ rule: ' ' })],
  ['message with a line break', rule({ rule: 'true', message: 'a\nb' })],
  ['rule with a line break', rule({ rule: 'true\n&& true' })],
  ['message expression', rule({ rule: 'true', messageExpression: '1' })],
  ['message expression that does not check', rule({ rule: 'true', messageExpression: 'self.b' })],
  ['reason', rule({ rule: 'true', reason: 'Because' })],
  ['field path', rule({ rule: 'true', fieldPath: '.b' })],
  ['optional old value that is not used', rule({ rule: 'true', optionalOldSelf: true })],
  [
    'old value in a list',
    ofSpec({
      type: 'array',
      maxItems: 5,
      items: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
    }),
  ],
  [
    'old value in a map',
    ofSpec({
      type: 'object',
      maxProperties: 3,
      additionalProperties: { type: 'string', maxLength: 5, 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] },
    }),
  ],
  ['expensive rule', rule({ rule: 'self.all(x, self.all(y, x == y))' }, { type: 'array', items: { type: 'string' } })],
  [
    'a bit expensive rule',
    rule(
      { rule: "self.all(x, x.contains('a'))" },
      { type: 'array', maxItems: 5000, items: { type: 'string', maxLength: 5000 } },
    ),
  ],
  [
    'rule of many values',
    ofSpec({
      type: 'array',
      items: {
        type: 'object',
        properties: {
          a: {
            type: 'array',
            items: { type: 'string' },
            'x-kubernetes-validations': [{ rule: "self.all(x, x != 'a')" }],
          },
        },
      },
    }),
  ],
  [
    'selectable fields',
    {
      version: {
        selectableFields: [{ jsonPath: '.spec.a' }, { jsonPath: '.spec.b' }, { jsonPath: 'x' }, { jsonPath: '.spec' }],
      },
      ...ofSpec({ type: 'object', properties: { a: { type: 'string' } } }),
    },
  ],
  ['protected group', { spec: { group: 'a.k8s.io' }, metadata: { name: 'wrongs.a.k8s.io' } }],
  ['deprecation', { version: { deprecationWarning: 'x' } }],
  [
    'unsupported keywords',
    ofSpec({
      type: 'object',
      $ref: '#/a',
      definitions: { a: { type: 'string' } },
      patternProperties: { a: { type: 'string' } },
      dependencies: { a: ['b'] },
      id: 'x',
    }),
  ],
  [
    'versions twice',
    {
      spec: {
        versions: [true, false].map((storage) => ({
          name: 'v1',
          served: true,
          storage,
          schema: { openAPIV3Schema: { type: 'object' } },
        })),
      },
    },
  ],
  [
    'two versions',
    {
      spec: {
        versions: ['v1', 'v2'].map((name) => ({
          name,
          served: true,
          storage: name === 'v1',
          schema: {
            openAPIV3Schema: { type: 'object', properties: { spec: { type: name === 'v1' ? 'object' : 'list' } } },
          },
        })),
      },
    },
  ],
  [
    'alternatives of the root',
    {
      schema: { type: 'object', properties: {}, anyOf: [{ properties: { a: { minLength: 1 } } }] },
      version: { subresources: {} },
    },
  ],
  ['type that is none', ofSpec({ type: 'text' })],
];

export const LABEL_SELECTORS: readonly string[] = [
  '',
  'a',
  '!a',
  'a=b',
  'a==b',
  'a!=b',
  'a in (b,c)',
  'a notin (b)',
  ' a  in ( b , c ) , d ',
  'a in ()',
  'a in (,)',
  'a in (,b,,c,)',
  'a=',
  'a=,b',
  'a>1',
  'a<-1',
  'a>x',
  'in',
  'notin in (in)',
  'a.b/c=d',
  ',',
  'a,',
  'a,,b',
  ',a',
  'a b',
  'a in b',
  'a in (b',
  'a in (b c)',
  'a in (b,=)',
  'a in (=)',
  'a in',
  '!a=b',
  '!',
  '!!a',
  'a=(',
  'a=!b',
  'a!b',
  'a=b=c',
  'a===b',
  '=b',
  '(a)',
  'a)',
  'a b=c',
  'a/b/c',
  'a%',
  'a=b%',
  'a in (b%,c%)',
  `${'a'.repeat(64)}=b`,
  `a=${'b'.repeat(64)}`,
  'x y z',
];

export const FIELD_SELECTORS: readonly string[] = [
  '',
  'metadata.name=a',
  'metadata.name==a',
  'metadata.name!=a',
  'metadata.name=a,metadata.name!=b',
  'metadata.name=',
  ',',
  String.raw`metadata.name=a\,b`,
  String.raw`metadata.name=a\=b`,
  String.raw`metadata.name=a\\b`,
  String.raw`metadata.name=a\x`,
  'metadata.name=a\\',
  'metadata.name=a=b',
  'metadata.name',
  'metadata.name>a',
];

const items = (item: Schema): Schema => ({
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['name'],
  items: {
    type: 'object',
    required: ['name'],
    ...item,
    properties: { name: text, size: { type: 'integer' }, ...item.properties },
  },
});

/** Accepts objects that {@link TIGHT_SCHEMA} rejects, so that stored objects can be invalid under a later schema. */
export const LOOSE_SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        a: text,
        b: text,
        list: { type: 'array', items: text },
        items: items({}),
        ruled: { type: 'object', properties: { x: text, y: text } },
        any: { type: 'object', properties: { p: text, q: text } },
        set: { type: 'array', items: text },
      },
    },
  },
};

/** {@link LOOSE_SCHEMA} with bounds and rules. */
export const TIGHT_SCHEMA: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['needed'],
      'x-kubernetes-validations': [{ rule: "!has(self.b) || self.b == 'ok'", message: 'b is not ok' }],
      properties: {
        needed: text,
        a: { type: 'string', maxLength: 2 },
        b: text,
        list: { type: 'array', maxItems: 5, items: { type: 'string', maxLength: 2 } },
        items: items({ properties: { size: { type: 'integer', maximum: 5 } } }),
        ruled: {
          type: 'object',
          properties: {
            x: { type: 'string', 'x-kubernetes-validations': [{ rule: "self == 'ok'", message: 'x is not ok' }] },
            y: text,
          },
          'x-kubernetes-validations': [{ rule: 'has(self.y)', message: 'y is missing' }],
        },
        any: {
          type: 'object',
          properties: { p: text, q: text },
          anyOf: [{ properties: { p: { maxLength: 1 } } }, { properties: { q: { maxLength: 1 } } }],
        },
        set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
      },
    },
  },
};

export const LOOSE_SPEC = {
  a: 'long',
  b: 'bad',
  list: ['long', 'x'],
  items: [
    { name: 'one', size: 9 },
    { name: 'two', size: 2 },
  ],
  ruled: { x: 'bad' },
  any: { p: 'long', q: 'long' },
  set: ['a', 'a'],
};

/** Changes of {@link LOOSE_SPEC}. */
export const LOOSE_CHANGES: readonly (readonly [name: string, change: object])[] = [
  ['nothing', {}],
  ['what is needed', { needed: 'x' }],
  ['another field', { needed: 'x', b: 'ok' }],
  ['the field that is wrong', { needed: 'x', b: 'ok', a: 'longer' }],
  ['a list that cannot be told apart', { needed: 'x', b: 'ok', list: ['long', 'y'] }],
  [
    'an element beside the one that is wrong',
    {
      needed: 'x',
      b: 'ok',
      items: [
        { name: 'one', size: 9 },
        { name: 'two', size: 3 },
      ],
    },
  ],
  [
    'the order of elements',
    {
      needed: 'x',
      b: 'ok',
      items: [
        { name: 'two', size: 2 },
        { name: 'one', size: 9 },
      ],
    },
  ],
  [
    'the element that is wrong',
    {
      needed: 'x',
      b: 'ok',
      items: [
        { name: 'one', size: 8 },
        { name: 'two', size: 9 },
      ],
    },
  ],
  ['an element of another name', { needed: 'x', b: 'ok', items: [{ name: 'three', size: 9 }] }],
  ['beside what a rule is about', { needed: 'x', b: 'ok', ruled: { x: 'bad', y: 'y' } }],
  ['what a rule is about', { needed: 'x', b: 'ok', ruled: { x: 'worse', y: 'y' } }],
  ['what a rule about the whole is about', { needed: 'x', b: 'ok', ruled: { x: 'ok' } }],
  ['alternatives', { needed: 'x', b: 'ok', any: { p: 'long', q: 'longer' } }],
  ['all alternatives', { needed: 'x', b: 'ok', any: { p: 'longer', q: 'longer' } }],
  ['a set that had duplicates', { needed: 'x', b: 'ok', set: ['b', 'b'] }],
];
