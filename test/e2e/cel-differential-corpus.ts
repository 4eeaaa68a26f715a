// The expressions, policies and mutations of the differential test of CEL. All were written for this test.

/** The object that expressions read. API servers do not know its schema. */
export const THING = {
  apiVersion: 'example.test/v1',
  kind: 'Thing',
  metadata: { name: 'thing', labels: { app: 'web', 'example.com/tier': 'gold' } },
  spec: {
    replicas: 3,
    ratio: 1.5,
    name: 'web-1',
    text: 'Größe: 日本語 😀',
    enabled: true,
    nothing: '',
    big: 4611686018427388000,
    ports: [80, 443, 8080],
    names: ['b', 'a', 'c', 'a'],
    mixed: [1, 'two', 3.5, true],
    empty: [],
    map: { one: 1, two: 2, three: 3 },
    single: { only: 1 },
    nested: { list: [{ name: 'x', value: 1 }, { name: 'y' }], 'dash-key': 'd', 'dot.key': 'e', namespace: 'n' },
    cpu: '1500m',
    memory: '2Gi',
    cidr: '10.0.0.0/8',
    address: '10.1.2.3',
    url: 'https://user@example.com:8443/a/b?x=1&y=2#top',
    version: '1.2.3-rc.1',
    time: '2024-02-29T12:34:56.789Z',
    duration: '1h30m',
    hostile: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!',
  },
} as const;

/** Expressions, one per line. Each has the same value, or fails with the same error, in both. */
export const EXPRESSIONS: readonly string[] = `
google.protobuf.Int32Value{value: 1} + 1
google.protobuf.Int32Value{value: 3000000000}
google.protobuf.Int32Value{value: dyn('x')}
google.protobuf.Int32Value{value: dyn(1.5)}
google.protobuf.Int32Value{value: 1} == null
google.protobuf.StringValue{value: object.metadata.name}
google.protobuf.FloatValue{value: 1.1}
google.protobuf.Timestamp{seconds: 10, nanos: -5}
google.protobuf.Duration{seconds: 3600} + duration('1s')
google.protobuf.Struct{fields: {'a': 1, 'b': [1u, null]}}
google.protobuf.Struct{fields: object.spec.nested}
google.protobuf.ListValue{values: object.spec.mixed}
google.protobuf.Value{number_value: 1.0, string_value: 'x'}
google.protobuf.Value{struct_value: {'a': timestamp(0)}}
1 + 2 * 3
7 / 2
7 % 4
-7 / 2
-7 % 4
1 / 0
1 % 0
1.0 / 0.0
9223372036854775807 + 1
-9223372036854775807 - 2
9223372036854775807 * 2
18446744073709551615u + 1u
0u - 1u
5u / 2u
-(-9223372036854775807 - 1)
1.5 + 2.5
2.0 * 1.5
'a' + 'b'
b'abc' + b'd'
[1, 2] + [3]
1 < 2 && 2 <= 2
1 == 1.0
1 < 1.5
1u < 2.5
'a' < 'b'
true < false
timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-02T00:00:00Z')
duration('1h') > duration('59m')
object.spec.replicas
object.spec.replicas + 1
object.spec.replicas > 2
object.spec.replicas == 3.0
object.spec.ratio
object.spec.ratio * 2.0
object.spec.ratio * 2
object.spec.big
object.spec.big * 4
object.spec.missing
object.spec.missing.deeper
object.spec.name.deeper
object.spec['name']
object.spec['missing']
object.spec.nested['dash-key']
object.spec.nested['dot.key']
object.spec.nested.namespace
object.spec.nested.list[0].name
object.spec.nested.list[1].value
object.spec.nested.list[2]
object.spec.nested.list[-1]
object.spec.ports[0]
object.spec.ports['0']
object.spec.ports[1.0]
object.spec.ports[0.5]
object.spec.map['one']
object.spec.map[1]
object.spec.mixed[1]
object.spec.mixed.map(x, type(x) == int)
object.metadata.labels['example.com/tier']
has(object.spec.name)
has(object.spec.missing)
has(object.spec.missing.deeper)
has(object.spec.nothing)
!has(object.spec.missing) || object.spec.missing > 1
object.spec.missing > 1 || true
true || object.spec.missing > 1
object.spec.missing > 1 && false
object.spec.missing > 1 || false
true ? 1 : object.spec.missing
object.spec.enabled ? 'on' : 'off'
object.spec.name ? 1 : 2
!object.spec.enabled
!object.spec.name
-object.spec.replicas
-object.spec.name
object.spec.replicas + object.spec.name
object.spec.name + object.spec.name
object.spec.ports + object.spec.names
object.spec.ports.size()
size(object.spec.text)
size(object.spec.map)
size(object.spec.replicas)
size(b'abc')
object.spec.ports.all(p, p > 50)
object.spec.ports.all(p, p > 100)
object.spec.ports.exists(p, p == 443)
object.spec.ports.exists_one(p, p > 400)
object.spec.ports.map(p, p * 2)
object.spec.ports.map(p, p > 100, p)
object.spec.ports.filter(p, p < 1000)
object.spec.map.all(k, k != 'four')
object.spec.map.map(k, object.spec.map[k] > 0)
object.spec.replicas.all(x, x > 1)
object.spec.names.all(n, n > 1)
object.spec.mixed.exists(x, x == 'two')
object.spec.mixed.all(x, x > 0)
object.spec.mixed.exists(x, x > 100)
[1, 2, 3].exists(i, i / 0 == 1 || i == 3)
object.spec.ports.transformList(i, p, i * p)
object.spec.map.transformMap(k, v, v + 1).two
object.spec.ports.transformMap(i, p, p)[2]
object.spec.ports.all(i, p, i < p)
object.spec.map.exists(k, v, k == 'two' && v == 2)
object.spec.map.existsOne(k, v, v > 2)
object.spec.map.transformMapEntry(k, v, {v: k})[2]
[1, 2].transformMapEntry(i, v, {'same': v})
cel.bind(x, object.spec.replicas, x * x)
object.spec.?missing.orValue('fallback')
object.spec.?name.orValue('fallback')
object.spec.?missing.?deeper.orValue(5)
object.spec.?missing.hasValue()
object.spec.?name.value()
object.spec.?missing.value()
object.spec.ports[?0].orValue(1)
object.spec.ports[?9].orValue(1)
object.spec.?nested.list[?1].?value.orValue(7)
object.spec.?name.optMap(n, n + '!').orValue('none')
object.spec.?missing.optMap(n, n + '!').orValue('none')
object.spec.?name.optFlatMap(n, optional.of(size(n))).orValue(0)
optional.of(1).or(optional.of(2)).value()
optional.none().or(optional.of(2)).value()
optional.ofNonZeroValue('').hasValue()
optional.ofNonZeroValue(0).orValue(9)
{?'a': object.spec.?name, ?'b': object.spec.?missing}
[?object.spec.?name, ?object.spec.?missing]
optional.of(1)
string(1)
string(1.5)
string(true)
string(1u)
string(b'abc')
string(b'\\xff')
string(timestamp('2024-02-29T12:34:56.789Z'))
string(duration('1h30m5s'))
string(duration('-1.5s'))
int('42')
int('4x')
int(3.9)
int(-3.9)
int(1e30)
int(18446744073709551615u)
uint(-1)
uint('7')
uint(3.7)
double('1.5e3')
double('x')
bool('true')
bool('T')
bool('yes')
bytes('Größe')
dyn(1) == 1u
type(1)
type(object.spec.ratio)
type(object.spec.replicas)
type(object.spec)
type(object.spec.ports)
type(null)
null == null
object == null
oldObject == null
object.spec == object.spec
object.spec.ports == [80, 443, 8080]
object.spec.map == {'one': 1, 'two': 2, 'three': 3}
object.spec.map == {'one': 1.0, 'two': 2u, 'three': 3}
object.spec.ports != object.spec.names
80 in object.spec.ports
'80' in object.spec.ports
'one' in object.spec.map
1 in object.spec.map
'x' in object.spec.name
{'a': 1, 'a': 2}
{1: 'a', 1u: 'b'}
{1: 'int', 'x': 2}[1]
[1, 'a']
[[1], [2, 3]]
object.spec.name.startsWith('web')
object.spec.name.endsWith('2')
object.spec.name.contains('-')
object.spec.name.matches('^web-[0-9]+$')
object.spec.name.matches('(?i)WEB')
object.spec.name.matches('[')
object.spec.name.matches(object.spec.version + '[')
object.spec.hostile.matches('^(a+)+$')
object.spec.text.size()
object.spec.text.charAt(1)
object.spec.text.charAt(100)
object.spec.text.indexOf('日')
object.spec.text.indexOf('x')
object.spec.text.lastIndexOf('e')
object.spec.text.substring(7)
object.spec.text.substring(7, 10)
object.spec.text.substring(10, 7)
object.spec.text.substring(0, 1000)
object.spec.text.lowerAscii()
object.spec.text.upperAscii()
object.spec.name.replace('-', '_')
'a-b-c'.replace('-', '+', 1)
'a,b,,c'.split(',')
'a,b,,c'.split(',', 2)
'a,b'.split(',', 0)
['a', 'b'].join('-')
['a', 'b'].join()
'  x '.trim()
strings.quote('a"b')
'abc'.reverse()
'%s is %d and %.2f'.format(['x', 5, 1.255])
'%x %X %b %o %e'.format([255, 'hi', 5, 8, 1234.5])
'%d'.format(['x'])
'%s'.format([])
'%q'.format([1])
'%s'.format([[1, 'a', {'k': 1.0}]])
'%s'.format([{'b': 1, 'a': [true, null]}])
'%s'.format([duration('90s')])
'%s'.format([timestamp('2024-01-01T00:00:00Z')])
object.spec.text.find('[0-9]+')
object.spec.url.find('[0-9]+')
object.spec.url.findAll('[a-z]=[0-9]')
object.spec.url.findAll('[a-z]', 2)
object.spec.names.isSorted()
['a', 'b'].isSorted()
object.spec.ports.isSorted()
object.spec.mixed.isSorted()
[1, 2, 3].sum()
[1.5, 2.5].sum()
[duration('1m'), duration('30s')].sum()
[].sum()
['a'].sum()
[3, 1, 2].min()
[3, 1, 2].max()
[].min()
['b', 'a'].max()
object.spec.names.indexOf('a')
object.spec.names.lastIndexOf('a')
object.spec.names.indexOf('z')
sets.contains(object.spec.names, ['a', 'b'])
sets.intersects(object.spec.names, ['x', 'c'])
sets.equivalent(object.spec.names, ['a', 'b', 'c'])
url(object.spec.url).getHost()
url(object.spec.url).getHostname()
url(object.spec.url).getPort()
url(object.spec.url).getScheme()
url(object.spec.url).getEscapedPath()
url(object.spec.url).getQuery()
url('../relative')
isURL('../relative')
isURL(object.spec.url)
url(object.spec.url)
quantity(object.spec.cpu).isGreaterThan(quantity('1'))
quantity(object.spec.cpu).asApproximateFloat()
quantity(object.spec.memory).asInteger()
quantity(object.spec.cpu).asInteger()
quantity(object.spec.memory).isInteger()
quantity(object.spec.cpu).isInteger()
quantity('1Mi').compareTo(quantity('1M'))
quantity('50k').add(quantity('20k')).asInteger()
quantity('50k').add(20).asInteger()
quantity('50k').sub(quantity('100k')).sign()
quantity('1.5x')
isQuantity('1.5Gi')
isQuantity('1.5x')
quantity('1Gi') == quantity('1024Mi')
quantity(object.spec.cpu)
ip(object.spec.address).family()
ip(object.spec.address).isLoopback()
ip('127.0.0.1').isLoopback()
ip('::1').family()
ip('fe80::1').isLinkLocalUnicast()
ip('224.0.0.1').isLinkLocalMulticast()
ip('0.0.0.0').isUnspecified()
ip('8.8.8.8').isGlobalUnicast()
ip('1.2.3')
isIP('1.2.3.4')
isIP('::ffff:1.2.3.4')
ip.isCanonical('2001:DB8::1')
ip.isCanonical('2001:db8::1')
string(ip('2001:DB8::0001'))
ip(object.spec.address)
cidr(object.spec.cidr).containsIP(object.spec.address)
cidr(object.spec.cidr).containsIP(ip('11.0.0.1'))
cidr(object.spec.cidr).containsCIDR('10.1.0.0/16')
cidr(object.spec.cidr).prefixLength()
cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')
string(cidr('10.1.2.3/8').masked())
string(cidr('10.1.2.3/8').ip())
cidr('10.0.0.0/33')
isCIDR('10.0.0.0/8')
isCIDR('10.0.0.0')
ip(object.spec.address) == ip('10.1.2.3')
semver(object.spec.version).major()
semver(object.spec.version).isLessThan(semver('1.2.3'))
semver('v1.0', true).minor()
semver('1.0')
isSemver('1.0')
isSemver('1.0.0')
semver('1.2.3').compareTo(semver('1.2.4'))
format.dns1123Label().validate('Not A Label').value()
format.dns1123Label().validate('label').hasValue()
format.named('uuid').value().validate('x').hasValue()
format.named('nonsense').hasValue()
!format.qualifiedName().validate('example.com/name').hasValue()
format.date().validate('2024-13-01').value()
timestamp(object.spec.time).getFullYear()
timestamp(object.spec.time).getMonth()
timestamp(object.spec.time).getDate()
timestamp(object.spec.time).getDayOfWeek()
timestamp(object.spec.time).getDayOfYear()
timestamp(object.spec.time).getHours('America/New_York')
timestamp(object.spec.time).getHours('+05:30')
timestamp(object.spec.time).getHours('Nowhere/City')
timestamp(object.spec.time).getMilliseconds()
timestamp(object.spec.time) + duration(object.spec.duration)
timestamp(object.spec.time) - timestamp('2024-01-01T00:00:00Z')
timestamp(object.spec.name)
timestamp(0)
int(timestamp(object.spec.time))
duration(object.spec.duration).getMinutes()
duration(object.spec.duration).getSeconds()
duration(object.spec.name)
duration('1h') + duration('5m')
duration('2540400h') + duration('2540400h')
[3, 1, 2].sort()
['b', 'a'].sort()
[1, 2, 3, 4].slice(1, 3)
[1, 2].slice(1, 5)
[[1], [2, [3]]].flatten()
[[1], [2, [3]]].flatten(2)
[1, 1, 2].distinct()
[1, 2, 3].reverse()
lists.range(4)
['ab', 'a', 'abc'].sortBy(s, size(s))
[1, 2, 3].first().value()
[].last().hasValue()
request.operation
request.name
request.namespace
request.userInfo.username
request.userInfo.groups
request.kind.kind
request.resource.resource
request.requestKind.version
has(request.subResource)
has(request.requestSubResource)
request.subResource
request.dryRun
request.options.kind
namespaceObject.metadata.name
namespaceObject.metadata.labels.team
namespaceObject.metadata.labels['missing']
has(namespaceObject.metadata.annotations)
namespaceObject.metadata.annotations['note']
namespaceObject.status.phase
namespaceObject.spec.finalizers
variables.other + 1
variables.broken
has(variables.other)
has(variables.broken) || true
authorizer.group('').resource('configmaps').namespace('diff').check('create').allowed()
authorizer.group('').resource('secrets').check('list').allowed()
authorizer.group('').resource('secrets').check('list').reason()
authorizer.requestResource.check('create').allowed()
authorizer.requestResource.check('impersonate').allowed()
authorizer.path('/healthz').check('get').allowed()
authorizer.path('').check('get').allowed()
authorizer.serviceAccount('default', 'nobody').group('apps').resource('deployments').check('get').allowed()
authorizer.serviceAccount('Bad Name', 'x').group('').resource('pods').check('get').allowed()
object.spec.mixed.map(x, string(x))
object.spec.ports.map(p, object.spec.ports.map(q, p * q))
lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))
lists.range(100).map(x, lists.range(100).map(y, x * y)).size()
lists.range(40000).map(x, string(x)).join('').size()
[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10].map(c, [1,2,3,4,5,6,7,8,9,10].map(d, [1,2,3,4,5,6,7,8,9,10].map(e, a * b * c * d * e)))))
`
  .trim()
  .split('\n');

/** Leaves of generated expressions. Maps have at most one entry, because Go iterates over others in random order. */
const LEAVES =
  `object.spec.replicas object.spec.ratio object.spec.name object.spec.text object.spec.enabled object.spec.missing
  object.spec.ports object.spec.names object.spec.mixed object.spec.empty object.spec.single object.spec.nested.list
  object.spec.cpu object.spec.address object.spec.time request.name request.userInfo.groups oldObject
  0 1 -1 2 10 1u 2u 1.5 -0.5 true false null 'a' 'web-1' '' b'a' [] [1] ['a','b'] {'a':1} {} duration('1m') timestamp(0)`
    .trim()
    .split(/\s+/u);

/** Templates of generated expressions. `_` is replaced by another expression. */
const SHAPES =
  `_ + _;_ - _;_ * _;_ / _;_ % _;_ == _;_ != _;_ < _;_ <= _;_ > _;_ >= _;_ && _;_ || _;!(_);-(_);(_) ? _ : _;_ in _;_[_];
  size(_);type(_);string(_);int(_);double(_);uint(_);dyn(_);[_, _];{'k': _};(_).all(x, x != _);(_).exists(x, x == _);(_).map(x, x);
  (_).filter(x, _);has(object.spec.missing) || _;object.?spec.?missing.orValue(_);optional.of(_).value();
  (_).startsWith(_);(_).contains(_);(_).matches('^[a-z]+');(_).split('-');(_).join(',');(_).indexOf(_);(_).isSorted();(_).max();
  (_).transformList(i, v, v);(_).all(i, v, v != _);cel.bind(y, _, y == _);quantity(_).sign();isIP(_);'%s'.format([_]);_.size()`
    .trim()
    .split(/;\s*/u);

/** Generates expressions, the same ones for the same seed. */
export function generatedExpressions(count: number, seed: number): string[] {
  let state = seed;
  // The linear congruential generator of "Numerical Recipes", which is good enough to select from lists.
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const pick = (list: readonly string[]): string => list[random(list.length)] ?? '';
  const make = (depth: number): string =>
    depth === 0 || random(4) === 0 ? pick(LEAVES) : pick(SHAPES).replaceAll('_', () => `(${make(depth - 1)})`);
  const root = (): string => pick(SHAPES).replaceAll('_', () => `(${make(2)})`);
  return Array.from({ length: count }, root);
}

/** A policy with special features, and the request that it is evaluated for. `validation` is a shorthand for one validation. */
export interface PolicyCase {
  readonly name: string;
  /** Fields of the policy's spec. */
  readonly spec: Readonly<Record<string, unknown>>;
  /** Fields of the binding's spec. Default: `validationActions: [Deny]`. */
  readonly binding?: Readonly<Record<string, unknown>>;
  /** Default: CREATE of a ConfigMap with this `data`. */
  readonly data?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly user?: string;
  /** Default: CREATE. Otherwise the policy matches only this operation, and the object is created before. */
  readonly operation?: 'UPDATE' | 'DELETE';
}

const costly = 'lists.range(900).all(x, lists.range(150).all(y, x + y >= 0))';

export const POLICIES: readonly PolicyCase[] = [
  { name: 'message', spec: { validations: [{ expression: 'false', message: 'plain message' }] } },
  { name: 'message-trimmed', spec: { validations: [{ expression: 'false', message: '  padded message  ' }] } },
  { name: 'no-message', spec: { validations: [{ expression: "  object.data.a == 'z'  " }] }, data: { a: 'b' } },
  {
    name: 'no-message-lines',
    spec: { validations: [{ expression: "object.data.a == 'z' &&\n  true" }] },
    data: { a: 'b' },
  },
  {
    name: 'message-expression',
    spec: { validations: [{ expression: 'false', message: 'm', messageExpression: "'got ' + object.data.a" }] },
    data: { a: 'b' },
  },
  {
    name: 'message-expression-fails',
    spec: {
      validations: [{ expression: 'false', message: 'fallback', messageExpression: "'got ' + object.data.missing" }],
    },
    data: { a: 'b' },
  },
  {
    name: 'message-expression-fails-bare',
    spec: { validations: [{ expression: 'false', messageExpression: "'got ' + object.data.missing" }] },
  },
  {
    name: 'message-expression-empty',
    spec: { validations: [{ expression: 'false', message: 'fallback', messageExpression: "' '" }] },
  },
  {
    name: 'message-expression-lines',
    spec: { validations: [{ expression: 'false', message: 'fallback', messageExpression: String.raw`'a\nb'` }] },
  },
  {
    name: 'message-expression-trailing-line',
    spec: { validations: [{ expression: 'false', message: 'fallback', messageExpression: String.raw`'ab\n'` }] },
  },
  {
    name: 'message-expression-return',
    spec: { validations: [{ expression: 'false', message: 'fallback', messageExpression: String.raw`'a\rb'` }] },
  },
  {
    name: 'message-expression-long',
    spec: {
      validations: [
        { expression: 'false', message: 'fallback', messageExpression: "lists.range(5121).map(x, 'x').join('')" },
      ],
    },
  },
  {
    name: 'message-expression-longest',
    spec: {
      validations: [
        { expression: 'false', message: 'fallback', messageExpression: "lists.range(5120).map(x, 'x').join('')" },
      ],
    },
  },
  {
    name: 'message-expression-long-bytes',
    spec: {
      validations: [
        { expression: 'false', message: 'fallback', messageExpression: "lists.range(2561).map(x, 'ö').join('')" },
      ],
    },
  },
  {
    name: 'message-expression-costly',
    spec: { validations: [{ expression: 'false', message: 'fallback', messageExpression: `${costly} ? 'a' : 'b'` }] },
  },
  {
    name: 'message-expression-variable',
    spec: {
      variables: [{ name: 'v', expression: "'v:' + object.data.a" }],
      validations: [{ expression: 'false', messageExpression: 'variables.v' }],
    },
    data: { a: 'b' },
  },
  {
    name: 'message-expression-authorizer',
    spec: {
      variables: [{ name: 'v', expression: "string(authorizer.path('/x').check('get').allowed())" }],
      validations: [{ expression: 'variables.v == "x"', message: 'fallback', messageExpression: 'variables.v' }],
    },
  },
  ...(['Forbidden', 'Invalid', 'RequestEntityTooLarge'] as const).map((reason) => ({
    name: `reason-${reason.toLowerCase()}`,
    spec: { validations: [{ expression: 'false', message: 'm', reason }] },
  })),
  {
    name: 'several',
    spec: {
      validations: [
        { expression: 'true' },
        { expression: 'false', message: 'second', reason: 'Forbidden' },
        { expression: 'false', message: 'third' },
      ],
    },
  },
  {
    name: 'all-hold',
    spec: { validations: [{ expression: 'true' }, { expression: "object.data.a == 'b'" }] },
    data: { a: 'b' },
  },
  { name: 'ignored', spec: { failurePolicy: 'Ignore', validations: [{ expression: 'object.data.missing == ""' }] } },
  {
    name: 'ignored-then-denied',
    spec: {
      failurePolicy: 'Ignore',
      validations: [{ expression: 'object.data.missing == ""' }, { expression: 'false', message: 'denied' }],
    },
  },
  {
    name: 'failed',
    spec: { validations: [{ expression: 'object.data.missing == ""', message: 'not shown', reason: 'Forbidden' }] },
  },
  {
    name: 'variable-order',
    spec: {
      variables: [
        { name: 'a', expression: '1' },
        { name: 'b', expression: 'variables.a + 1' },
      ],
      validations: [{ expression: 'variables.b == 3', messageExpression: "'b is ' + string(variables.b)" }],
    },
  },
  {
    name: 'variable-fails',
    spec: {
      variables: [{ name: 'a', expression: 'object.data.missing' }],
      validations: [{ expression: 'variables.a == "x"' }],
    },
  },
  {
    name: 'variable-fails-twice',
    spec: {
      variables: [
        { name: 'a', expression: 'object.data.missing' },
        { name: 'b', expression: 'variables.a + "x"' },
      ],
      validations: [{ expression: 'variables.b == "x"' }],
    },
  },
  {
    name: 'variable-unused-fails',
    spec: { variables: [{ name: 'a', expression: 'object.data.missing' }], validations: [{ expression: 'true' }] },
  },
  {
    name: 'variable-costly-once',
    spec: {
      variables: [{ name: 'a', expression: costly }],
      validations: [
        { expression: 'variables.a && variables.a && variables.a' },
        { expression: 'variables.a' },
        { expression: '!variables.a', message: 'done' },
      ],
    },
  },
  {
    name: 'cost-per-expression',
    spec: { validations: [{ expression: 'lists.range(2000).all(x, lists.range(2000).all(y, true))' }] },
  },
  {
    name: 'cost-per-expression-ignored',
    spec: {
      failurePolicy: 'Ignore',
      validations: [{ expression: 'lists.range(2000).all(x, lists.range(2000).all(y, true))' }],
    },
  },
  { name: 'cost-of-policy', spec: { validations: Array.from({ length: 30 }, () => ({ expression: costly })) } },
  {
    name: 'cost-of-policy-within',
    spec: {
      validations: [
        ...Array.from({ length: 8 }, () => ({ expression: costly })),
        { expression: 'false', message: 'within' },
      ],
    },
  },
  {
    name: 'cost-of-messages',
    spec: {
      validations: Array.from({ length: 30 }, () => ({
        expression: 'true',
        messageExpression: `${costly} ? 'a' : 'b'`,
      })),
    },
  },
  {
    name: 'cost-of-conditions',
    spec: {
      matchConditions: Array.from({ length: 8 }, (_, index) => ({ name: `c${index}`, expression: costly })),
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'cost-of-conditions-ignored',
    spec: {
      failurePolicy: 'Ignore',
      matchConditions: Array.from({ length: 8 }, (_, index) => ({ name: `c${index}`, expression: costly })),
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'condition-true',
    spec: {
      matchConditions: [{ name: 'a', expression: "object.data.a == 'b'" }],
      validations: [{ expression: 'false', message: 'm' }],
    },
    data: { a: 'b' },
  },
  {
    name: 'condition-false',
    spec: {
      matchConditions: [{ name: 'a', expression: "object.data.a == 'x'" }],
      validations: [{ expression: 'false', message: 'm' }],
    },
    data: { a: 'b' },
  },
  {
    name: 'condition-fails',
    spec: {
      matchConditions: [{ name: 'a', expression: 'object.data.missing == ""' }],
      validations: [{ expression: 'true' }],
    },
  },
  {
    name: 'condition-fails-twice',
    spec: {
      matchConditions: [
        { name: 'a', expression: 'object.data.missing == ""' },
        { name: 'b', expression: 'object.data.other == ""' },
      ],
      validations: [{ expression: 'true' }],
    },
  },
  {
    name: 'condition-fails-and-false',
    spec: {
      matchConditions: [
        { name: 'a', expression: 'object.data.missing == ""' },
        { name: 'b', expression: 'false' },
      ],
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'condition-fails-ignored',
    spec: {
      failurePolicy: 'Ignore',
      matchConditions: [{ name: 'a', expression: 'object.data.missing == ""' }],
      validations: [{ expression: 'false' }],
    },
  },
  {
    name: 'condition-namespace',
    spec: {
      matchConditions: [{ name: 'a', expression: 'namespaceObject == null' }],
      validations: [{ expression: 'false', message: 'no namespace there' }],
    },
  },
  {
    name: 'condition-user',
    spec: {
      matchConditions: [{ name: 'a', expression: "request.userInfo.username == 'alice'" }],
      validations: [{ expression: 'false', message: 'alice' }],
    },
    user: 'alice',
  },
  {
    name: 'condition-other-user',
    spec: {
      matchConditions: [{ name: 'a', expression: "request.userInfo.username == 'alice'" }],
      validations: [{ expression: 'false', message: 'alice' }],
    },
  },
  {
    name: 'warn',
    spec: {
      validations: [
        { expression: 'false', message: 'just a warning' },
        { expression: 'false', message: 'another' },
      ],
    },
    binding: { validationActions: ['Warn'] },
  },
  {
    name: 'warn-error',
    spec: { validations: [{ expression: 'object.data.missing == ""' }] },
    binding: { validationActions: ['Warn', 'Audit'] },
  },
  {
    name: 'audit',
    spec: { validations: [{ expression: 'false', message: 'noted' }] },
    binding: { validationActions: ['Audit'] },
  },
  {
    name: 'deny-audit',
    spec: { validations: [{ expression: 'false', message: 'noted and denied' }] },
    binding: { validationActions: ['Deny', 'Audit'] },
  },
  {
    name: 'annotation-fails',
    spec: {
      validations: [{ expression: 'true' }],
      auditAnnotations: [{ key: 'k', valueExpression: "'x' + object.data.missing" }],
    },
  },
  {
    name: 'annotation-fails-ignored',
    spec: {
      failurePolicy: 'Ignore',
      validations: [{ expression: 'true' }],
      auditAnnotations: [{ key: 'k', valueExpression: "'x' + object.data.missing" }],
    },
  },
  {
    name: 'annotation-fails-warn',
    spec: { auditAnnotations: [{ key: 'k', valueExpression: "'x' + object.data.missing" }] },
    binding: { validationActions: ['Warn'] },
  },
  {
    name: 'annotation-null',
    spec: {
      auditAnnotations: [
        { key: 'k', valueExpression: 'null' },
        { key: 'l', valueExpression: "'v'" },
      ],
    },
  },
  {
    name: 'annotation-trimmed',
    spec: {
      auditAnnotations: [
        { key: 'k', valueExpression: "'  <b> ' + object.data.a + ' '" },
        { key: 'empty', valueExpression: "' '" },
      ],
    },
    data: { a: 'ü' },
  },
  {
    name: 'annotation-long',
    spec: { auditAnnotations: [{ key: 'k', valueExpression: "lists.range(10300).map(x, 'x').join('')" }] },
  },
  {
    name: 'annotation-params',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      auditAnnotations: [
        { key: 'k', valueExpression: "params.data.limit == '5' ? 'five' : ''" },
        { key: 'same', valueExpression: "'x'" },
      ],
    },
    binding: { paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'annotation-authorizer',
    spec: { auditAnnotations: [{ key: 'k', valueExpression: "string(authorizer.path('/x').check('get').allowed())" }] },
  },
  {
    name: 'denied-before-annotation',
    spec: {
      validations: [{ expression: 'false', message: 'first' }],
      auditAnnotations: [{ key: 'k', valueExpression: "'x' + object.data.missing" }],
    },
  },
  {
    name: 'param',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        {
          expression: 'object.data.a == params.data.expected',
          messageExpression: "'expected ' + params.data.expected + ' of ' + params.kind",
        },
      ],
    },
    binding: { paramRef: { name: 'param-one', parameterNotFoundAction: 'Deny' } },
    data: { a: 'b' },
  },
  {
    name: 'param-elsewhere',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [{ expression: 'false', messageExpression: 'params.metadata.namespace' }],
    },
    binding: { paramRef: { name: 'param-one', namespace: 'diff-params', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param-missing',
    spec: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, validations: [{ expression: 'true' }] },
    binding: { paramRef: { name: 'param-none', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param-missing-ignored',
    spec: {
      failurePolicy: 'Ignore',
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [{ expression: 'false' }],
    },
    binding: { paramRef: { name: 'param-none', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param-missing-allowed',
    spec: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, validations: [{ expression: 'false' }] },
    binding: { paramRef: { name: 'param-none', parameterNotFoundAction: 'Allow' } },
  },
  {
    name: 'param-selector',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [{ expression: "params.data.limit == '5'", messageExpression: "'limit ' + params.data.limit" }],
    },
    binding: { paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param-selector-none',
    spec: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, validations: [{ expression: 'true' }] },
    binding: { paramRef: { selector: { matchLabels: { limits: 'none' } }, parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'param-unbound',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        { expression: 'params == null', message: 'not null' },
        { expression: 'params != null', message: 'null' },
      ],
    },
  },
  {
    name: 'param-condition',
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConditions: [{ name: 'p', expression: "params.data.expected == 'x'" }],
      validations: [{ expression: 'false', message: 'met' }],
    },
    binding: { paramRef: { name: 'param-one', parameterNotFoundAction: 'Deny' } },
  },
  {
    name: 'binding-namespace',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: { validationActions: ['Deny'], matchResources: { namespaceSelector: { matchLabels: { team: 'red' } } } },
  },
  {
    name: 'binding-other-namespace',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: {
        namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'NotIn', values: ['red', 'blue'] }] },
      },
    },
  },
  {
    name: 'binding-object',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: { matchResources: { objectSelector: { matchExpressions: [{ key: 'special', operator: 'Exists' }] } } },
    labels: { special: '1' },
  },
  {
    name: 'binding-other-object',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: { objectSelector: { matchExpressions: [{ key: 'special', operator: 'DoesNotExist' }] } },
    },
    labels: { special: '1' },
  },
  {
    name: 'binding-rules',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['configmaps'] }],
      },
    },
  },
  {
    name: 'binding-excluded',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: {
        excludeResourceRules: [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*'] }],
      },
    },
  },
  {
    name: 'binding-excluded-name',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: {
        excludeResourceRules: [
          {
            apiGroups: [''],
            apiVersions: ['v1'],
            operations: ['CREATE'],
            resources: ['configmaps'],
            resourceNames: ['other'],
          },
        ],
      },
    },
  },
  {
    name: 'binding-scope',
    spec: { validations: [{ expression: 'false', message: 'm' }] },
    binding: {
      matchResources: {
        resourceRules: [
          { apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*'], scope: 'Cluster' },
        ],
      },
    },
  },
  {
    name: 'update',
    operation: 'UPDATE',
    spec: {
      validations: [
        {
          expression: 'object.data.a != oldObject.data.a',
          messageExpression: "request.operation + ' of ' + oldObject.data.a",
        },
      ],
    },
    data: { a: 'b' },
  },
  {
    name: 'update-fails',
    operation: 'UPDATE',
    spec: { validations: [{ expression: 'oldObject.data.missing == ""' }] },
    data: { a: 'b' },
  },
  {
    name: 'delete',
    operation: 'DELETE',
    spec: {
      validations: [
        {
          expression: 'object != null',
          messageExpression: "request.operation + ' of ' + oldObject.data.a + ' ' + request.name",
        },
      ],
    },
    data: { a: 'b' },
  },
  {
    name: 'delete-object',
    operation: 'DELETE',
    spec: { validations: [{ expression: 'object.data.a == "b"' }] },
    data: { a: 'b' },
  },
  {
    name: 'delete-options',
    operation: 'DELETE',
    spec: { validations: [{ expression: "request.options.kind == 'X'", messageExpression: 'request.options.kind' }] },
    data: { a: 'b' },
  },
  { name: 'quotes', spec: { validations: [{ expression: 'false', message: `it's "quoted" <b>&` }] } },
];

/** Specs that API servers reject, with the messages. The names of the policies are `invalid-<index>`. */
export const INVALID: readonly Readonly<Record<string, unknown>>[] = [
  { validations: [{ expression: 'object.spec.x +' }] },
  { validations: [{ expression: 'unknown == 1' }] },
  { validations: [{ expression: '1 + "a" == 2' }] },
  { validations: [{ expression: 'object.spec' }] },
  { validations: [{ expression: '1' }] },
  { validations: [{ expression: '' }] },
  { validations: [{ expression: 'true', messageExpression: '1' }] },
  { validations: [{ expression: 'true', messageExpression: '  ' }] },
  { validations: [{ expression: 'true', messageExpression: 'authorizer == null ? "a" : "b"' }] },
  { validations: [{ expression: 'true', message: '  ' }] },
  { validations: [{ expression: 'true', message: 'a\nb' }] },
  { validations: [{ expression: 'true', reason: 'Nonsense' }] },
  { validations: [{ expression: 'true', reason: 'Unauthorized' }] },
  { validations: [{ expression: 'params.x == 1' }] },
  { validations: [{ expression: 'variables.x == 1' }] },
  { validations: [{ expression: 'request.uid == ""' }] },
  { validations: [{ expression: 'namespaceObject.metadata.ownerReferences.size() == 0' }] },
  { validations: [{ expression: 'request.name == 1' }] },
  { validations: [{ expression: "'a'.matches('[')" }] },
  { validations: [{ expression: "duration('x') == duration('1s')" }] },
  { validations: [{ expression: "timestamp('x') == timestamp(0)" }] },
  { validations: [{ expression: "[1, 'a'].size() == 2" }] },
  { validations: [{ expression: 'Object{}.x == 1' }] },
  { validations: [{ expression: "google.protobuf.Int32Value{value: 'a'} == 1" }] },
  { validations: [{ expression: 'google.protobuf.Int32Value{valu: 1} == 1' }] },
  { validations: [{ expression: 'a.b.c.d()' }] },
  { validations: [{ expression: 'object.all(x)' }] },
  { validations: [{ expression: "'abc" }] },
  { validations: [{ expression: '1 ++ 2' }] },
  {},
  { validations: [] },
  { validations: [{ expression: 'true' }], failurePolicy: 'Maybe' },
  { validations: [{ expression: 'true' }], paramKind: { apiVersion: '', kind: '' } },
  { validations: [{ expression: 'true' }], paramKind: { apiVersion: 'a/b/c', kind: 'X' } },
  { validations: [{ expression: 'true' }], paramKind: { apiVersion: 'Group_/v1', kind: 'x_y' } },
  { validations: [{ expression: 'true' }], matchConditions: [{ name: '', expression: '' }] },
  { validations: [{ expression: 'true' }], matchConditions: [{ name: 'a b', expression: 'true' }] },
  { validations: [{ expression: 'true' }], matchConditions: [{ name: 'a', expression: '1' }] },
  {
    validations: [{ expression: 'true' }],
    matchConditions: [{ name: 'a', expression: 'variables.x' }],
    variables: [{ name: 'x', expression: 'true' }],
  },
  { validations: [{ expression: 'true' }], matchConditions: [{ name: 'a', expression: 'params != null' }] },
  { validations: [{ expression: 'true' }], variables: [{ name: '', expression: '' }] },
  { validations: [{ expression: 'true' }], variables: [{ name: 'a-b', expression: 'true' }] },
  { validations: [{ expression: 'true' }], variables: [{ name: 'in', expression: 'true' }] },
  {
    validations: [{ expression: 'true' }],
    variables: [
      { name: 'a', expression: 'variables.b' },
      { name: 'b', expression: '1' },
    ],
  },
  { validations: [{ expression: 'variables.a == 1' }], variables: [{ name: 'a', expression: "'text'" }] },
  { validations: [{ expression: 'variables.nope == 1' }], variables: [{ name: 'a', expression: "'text'" }] },
  { auditAnnotations: [{ key: '', valueExpression: '' }] },
  { auditAnnotations: [{ key: 'a', valueExpression: '1' }] },
  { auditAnnotations: [{ key: 'a/b', valueExpression: "'a'" }] },
  {
    auditAnnotations: [
      { key: 'a', valueExpression: "'a'" },
      { key: 'a', valueExpression: "'b'" },
    ],
  },
  { validations: [{ expression: 'true' }], matchConstraints: {} },
  { validations: [{ expression: 'true' }], matchConstraints: { resourceRules: [{}] } },
  {
    validations: [{ expression: 'true' }],
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: ['*', ''],
          apiVersions: ['*', 'v1', ''],
          operations: ['*', 'CREATE', 'PATCH'],
          resources: ['*', 'pods', 'pods/*', 'pods/status'],
        },
      ],
    },
  },
  {
    validations: [{ expression: 'true' }],
    matchConstraints: {
      matchPolicy: 'Sometimes',
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'], scope: 'World' },
      ],
    },
  },
  {
    validations: [{ expression: 'true' }],
    matchConstraints: {
      objectSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
      resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    },
  },
];

/**
 * Mutations of a ConfigMap or a Deployment. CEL maps and lists that are nested in lists and maps of an `Object{…}` are not tested:
 * the API server of 1.34 fails to convert them, and later ones convert them, as this engine does.
 */
export interface MutationCase {
  readonly name: string;
  readonly patches?: readonly string[];
  readonly configurations?: readonly string[];
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
  readonly on?: 'deployments';
}

export const MUTATIONS: readonly MutationCase[] = [
  { name: 'add', patches: [`[JSONPatch{op: 'add', path: '/data/b', value: 'added'}]`] },
  { name: 'add-map', patches: [`[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}]`] },
  {
    name: 'add-escaped',
    patches: [
      `[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('example.com/x~y'.replace('~', '-')), value: 'v'}]`,
    ],
  },
  { name: 'replace', patches: [`[JSONPatch{op: 'replace', path: '/data/a', value: 'new'}]`] },
  { name: 'replace-missing', patches: [`[JSONPatch{op: 'replace', path: '/data/zz', value: 'new'}]`] },
  { name: 'replace-missing-parent', patches: [`[JSONPatch{op: 'replace', path: '/nothing/zz', value: 'new'}]`] },
  { name: 'remove', patches: [`[JSONPatch{op: 'remove', path: '/data/a'}]`] },
  { name: 'remove-missing', patches: [`[JSONPatch{op: 'remove', path: '/data/zz'}]`] },
  { name: 'remove-missing-parent', patches: [`[JSONPatch{op: 'remove', path: '/nope/zz'}]`] },
  { name: 'move', patches: [`[JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}]`] },
  { name: 'move-missing', patches: [`[JSONPatch{op: 'move', from: '/data/zz', path: '/data/b'}]`] },
  { name: 'copy', patches: [`[JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}]`] },
  { name: 'copy-no-from', patches: [`[JSONPatch{op: 'copy', path: '/data/b'}]`] },
  {
    name: 'test-holds',
    patches: [
      `[JSONPatch{op: 'test', path: '/data/a', value: 'x'}, JSONPatch{op: 'add', path: '/data/b', value: 'y'}]`,
    ],
  },
  {
    name: 'test-fails',
    patches: [
      `[JSONPatch{op: 'test', path: '/data/a', value: 'no'}, JSONPatch{op: 'add', path: '/data/b', value: 'y'}]`,
    ],
  },
  { name: 'test-no-path', patches: [`[JSONPatch{op: 'test', path: '/none/a', value: 'no'}]`] },
  { name: 'unknown-op', patches: [`[JSONPatch{op: 'merge', path: '/data/a', value: 'no'}]`] },
  { name: 'no-path', patches: [`[JSONPatch{op: 'add', path: 'data', value: 'no'}]`] },
  { name: 'empty', patches: [`object.data.size() > 100 ? [JSONPatch{op: 'add', path: '/data/b', value: 'y'}] : []`] },
  {
    name: 'computed',
    patches: [`object.data.map(k, JSONPatch{op: 'replace', path: '/data/' + k, value: object.data[k] + '!'})`],
  },
  {
    name: 'two-in-order',
    patches: [
      `[JSONPatch{op: 'add', path: '/data/b', value: object.data.a + '1'}]`,
      `[JSONPatch{op: 'add', path: '/data/c', value: object.data.b + '2'}]`,
    ],
  },
  { name: 'fails', patches: [`[JSONPatch{op: 'add', path: '/data/b', value: object.data.missing}]`] },
  {
    name: 'fails-ignored',
    patches: [`[JSONPatch{op: 'add', path: '/data/b', value: object.data.missing}]`],
    spec: { failurePolicy: 'Ignore' },
  },
  {
    name: 'fails-between',
    patches: [
      `[JSONPatch{op: 'add', path: '/data/b', value: '1'}]`,
      `[JSONPatch{op: 'remove', path: '/data/zz'}]`,
      `[JSONPatch{op: 'add', path: '/data/c', value: '2'}]`,
    ],
    spec: { failurePolicy: 'Ignore' },
  },
  {
    name: 'fails-twice',
    patches: [`[JSONPatch{op: 'remove', path: '/data/zz'}]`, `[JSONPatch{op: 'remove', path: '/data/yy'}]`],
  },
  {
    name: 'condition-false',
    patches: [`[JSONPatch{op: 'add', path: '/data/b', value: '1'}]`],
    spec: { matchConditions: [{ name: 'n', expression: 'false' }] },
  },
  {
    name: 'condition-fails',
    patches: [`[JSONPatch{op: 'add', path: '/data/b', value: '1'}]`],
    spec: { matchConditions: [{ name: 'n', expression: 'object.data.missing == ""' }] },
  },
  {
    name: 'variables',
    patches: [`[JSONPatch{op: 'add', path: '/data/b', value: variables.v}]`],
    spec: { variables: [{ name: 'v', expression: 'object.data.a + namespaceObject.metadata.labels.team' }] },
  },
  {
    name: 'reinvoked',
    patches: [`[JSONPatch{op: 'replace', path: '/data/a', value: object.data.a + '+'}]`],
    spec: { reinvocationPolicy: 'IfNeeded' },
  },
  {
    name: 'wrong-type-name',
    patches: [`[JSONPatch{op: 'add', path: '/data', value: Object.data{b: Object.wrong{}}}]`],
  },
  { name: 'null-deletes', patches: [`[JSONPatch{op: 'add', path: '/metadata/annotations', value: null}]`] },
  { name: 'apply-label', configurations: [`Object{metadata: Object.metadata{labels: {'added': 'yes'}}}`] },
  { name: 'apply-data', configurations: [`Object{data: {'a': 'changed', 'b': 'new'}}`] },
  {
    name: 'apply-struct-map',
    configurations: [`Object{metadata: Object.metadata{annotations: Object.metadata.annotations{note: 'n'}}}`],
  },
  { name: 'apply-wrong-name', configurations: [`Object{metadata: Object.wrong{labels: {'a': 'b'}}}`] },
  { name: 'apply-optional', configurations: [`Object{?immutable: object.?nothing, data: {'b': 'c'}}`] },
  { name: 'apply-boolean', configurations: [`Object{immutable: true}`] },
  { name: 'apply-twice', configurations: [`Object{data: {'b': object.data.a}}`, `Object{data: {'c': object.data.b}}`] },
  { name: 'apply-fails', configurations: [`Object{data: {'b': object.data.missing}}`] },
  { name: 'apply-replicas', on: 'deployments', configurations: [`Object{spec: Object.spec{replicas: 5}}`] },
  {
    name: 'apply-pod-scalar',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{hostNetwork: false, terminationGracePeriodSeconds: 5}}}}`,
    ],
  },
  {
    name: 'apply-list-element',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'main', env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]}]}}}}`,
    ],
  },
  {
    name: 'apply-list-new-element',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 'example.com/side:1'}]}}}}`,
    ],
  },
  {
    name: 'apply-list-order',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 'example.com/side:1'}, Object.spec.template.spec.containers{name: 'main', image: 'example.com/main:2'}]}}}}`,
    ],
  },
  {
    name: 'apply-empty-list',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: []}}}}`,
    ],
  },
  {
    name: 'apply-twice-in-list',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'main', image: 'a'}, Object.spec.template.spec.containers{name: 'main', image: 'b'}]}}}}`,
    ],
  },
  {
    name: 'apply-atomic-list',
    on: 'deployments',
    configurations: [
      `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'main', args: ['x']}]}}}}`,
    ],
  },
  {
    name: 'apply-atomic-map',
    on: 'deployments',
    configurations: [`Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}`],
  },
  {
    name: 'apply-unknown-field',
    on: 'deployments',
    configurations: [`Object{spec: Object.spec{nothing: 1}}`],
  },
  {
    name: 'apply-wrong-type',
    on: 'deployments',
    configurations: [`Object{spec: Object.spec{replicas: 'x'}}`],
  },
  {
    name: 'list-insert',
    on: 'deployments',
    patches: [
      `[JSONPatch{op: 'add', path: '/spec/template/spec/containers/0', value: Object.spec.template.spec.containers{name: 'first', image: 'i'}}]`,
    ],
  },
  {
    name: 'list-append',
    on: 'deployments',
    patches: [
      `[JSONPatch{op: 'add', path: '/spec/template/spec/containers/-', value: Object.spec.template.spec.containers{name: 'last', image: 'i', env: [Object.spec.template.spec.containers.env{name: 'A', value: 'b'}]}}]`,
    ],
  },
  {
    name: 'list-negative',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/-1/image', value: 'other'}]`],
  },
  {
    name: 'list-beyond',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'add', path: '/spec/template/spec/containers/7', value: {'name': 'x'}}]`],
  },
  {
    name: 'list-no-index',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'add', path: '/spec/template/spec/containers/x', value: {'name': 'x'}}]`],
  },
  {
    name: 'list-remove-beyond',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'remove', path: '/spec/template/spec/containers/7'}]`],
  },
  {
    name: 'list-replace-beyond',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'replace', path: '/spec/template/spec/containers/7', value: {'name': 'x'}}]`],
  },
  {
    name: 'list-test-beyond',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'test', path: '/spec/template/spec/containers/7', value: {'name': 'x'}}]`],
  },
  {
    name: 'number',
    on: 'deployments',
    patches: [`[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas * 2}]`],
  },
];
