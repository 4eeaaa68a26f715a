// The builtins of Rego policies, called with the fuel that a guest has.
import { BuiltinError } from '../../src/wasm/guests/opa/errors.ts';
import { opaBuiltins } from '../../src/wasm/guests/opa/builtin-table.ts';
import { RegoNumber } from '../../src/wasm/guests/opa/number.ts';
import { RegoObject, RegoSet } from '../../src/wasm/guests/opa/value.ts';
import type { RegoValue } from '../../src/wasm/guests/opa/value.ts';
import { parseRegoText, regoText } from '../../src/wasm/guests/opa/value-text.ts';
import { WasmError } from '../../src/wasm/binary/errors.ts';
import { HostileSet, valueOf } from './hostile-values.ts';
import type { Family, Hostile } from './hostile-values.ts';
import type { Target } from './target.ts';

/** Of Rego's guests, see FUEL_PER_SECOND in src/engine/evaluator.ts. */
const FUEL_PER_SECOND = 2e9;
const NS_PER_FUEL: number = 1e9 / FUEL_PER_SECOND;
/** Fuel of a review with a timeout of a second. */
const FUEL = FUEL_PER_SECOND;
/** What src/wasm/guests/opa.ts charges for a call, and for each byte of operands and result. */
const FUEL_PER_CALL = 2000;
const FUEL_PER_BYTE = 20;

/** Kinds of the operands by builtin, as hostile-values.ts names them. */
const OPERANDS: Readonly<Record<string, string>> = {
  text: `crypto.md5 crypto.sha1 crypto.sha256 hex.encode base64url.encode_no_pad urlquery.encode urlquery.decode
    urlquery.decode_object strings.reverse glob.quote_meta trace`,
  'text text': 'crypto.hmac.md5 crypto.hmac.sha1 crypto.hmac.sha256 crypto.hmac.sha512 crypto.hmac.equal',
  hex: 'hex.decode',
  pairs: 'urlquery.encode_object',
  jwt: 'io.jwt.decode',
  'map patch': 'json.patch',
  range: 'net.cidr_is_valid net.cidr_expand',
  'ranges ranges': 'net.cidr_contains_matches',
  ranges: 'net.cidr_merge',
  'any any': 'object.subset',
  map: 'object.keys',
  'list ': 'object.union_n array.reverse internal.print',
  json: 'json.is_valid',
  'any options': 'json.marshal_with_options',
  'int int': 'numbers.range',
  'int int int': 'numbers.range_step',
  'graph roots': 'graph.reachable_paths',
  '': 'opa.runtime time.now_ns',
  'text int': 'rand.intn',
  'text ': 'uuid.rfc4122',
  uuid: 'uuid.parse',
  'text pattern replacement': 'regex.replace',
  'pattern text': 'regex.split regex.match re_match',
  'pattern text int': 'regex.find_n regex.find_all_string_submatch_n',
  pattern: 'regex.is_valid',
  'pattern text key key': 'regex.template_match',
  'version version': 'semver.compare',
  version: 'semver.is_valid',
  'format list': 'sprintf',
  'text part': 'indexof_n strings.count',
  'affixed affixed': 'strings.any_prefix_match strings.any_suffix_match',
  'text part int': 'strings.split_n',
  'pairs text': 'strings.replace_n',
  'template map': 'strings.render_template',
  'layout layout': 'time.parse_ns',
  time: 'time.parse_rfc3339_ns',
  duration: 'time.parse_duration_ns',
  moment: 'time.format time.date time.clock time.weekday',
  'int int int int': 'time.add_date',
  'moment moment': 'time.diff',
  quantity: 'units.parse units.parse_bytes',
  any: 'yaml.marshal',
  yaml: 'yaml.unmarshal yaml.is_valid',
};

/** Kinds that only these builtins have. */
const OWN_KINDS: Readonly<Record<string, (family: Family) => Hostile>> = {
  options: (family) => ({ indent: valueOf('part', family), pretty: true }),
  roots: () => ['0', '1'],
  affixed: (family) => family.random.of([() => valueOf('texts', family), () => valueOf('text', family)])(),
  moment: (family) =>
    family.random.of<() => Hostile>([
      () => 1_700_000_000_000_000_000n,
      () => [1_700_000_000_000_000_000n, 'Europe/Berlin'],
      () => [1_700_000_000_000_000_000n, 'UTC', valueOf('layout', family)],
      () => [valueOf('int', family), valueOf('text', family)],
    ])(),
};

const KINDS = new Map(
  Object.entries(OPERANDS).flatMap(([kinds, names]) =>
    names.split(/\s+/).map((name) => [name, kinds.split(' ').filter((kind) => kind !== '')] as const),
  ),
);

function regoValue(value: Hostile): RegoValue {
  if (value instanceof HostileSet) {
    return new RegoSet(value.items.map(regoValue));
  }
  if (Array.isArray(value)) {
    return (value as readonly Hostile[]).map(regoValue);
  }
  if (typeof value === 'object' && value !== null) {
    return new RegoObject(Object.entries(value).map(([key, item]) => [key, regoValue(item)]));
  }
  return typeof value === 'bigint' || typeof value === 'number' ? new RegoNumber(String(value)) : value;
}

class OutOfFuel extends Error {}

export function regoBuiltins(): readonly Target[] {
  return Array.from(opaBuiltins, ([name, call]) => {
    const kinds = KINDS.get(name);
    if (kinds === undefined) {
      throw new RangeError(`the builtin ${name} has no row in OPERANDS`);
    }
    return {
      name,
      // As texts, because the guest writes its values.
      arguments: (family: Family) =>
        kinds.map((kind) => textOf(regoValue(OWN_KINDS[kind]?.(family) ?? valueOf(kind, family)))),
      charge: (texts: readonly unknown[]) => {
        let fuel = FUEL_PER_CALL;
        const charge = (more: number): void => {
          fuel += more;
          if (fuel > FUEL) {
            throw new OutOfFuel();
          }
        };
        const context = { nowNs: 0n, randomResults: new Map(), patterns: new Map(), charge, log: () => {} };
        try {
          const operands = texts.map((text) => {
            charge(Buffer.byteLength(String(text)) * FUEL_PER_BYTE);
            return parseRegoText(String(text));
          });
          const result = call(operands, context);
          if (result !== undefined) {
            regoText(result, (chars) => charge(200 + chars * FUEL_PER_BYTE));
          }
        } catch (error) {
          if (!(error instanceof OutOfFuel || error instanceof BuiltinError || error instanceof WasmError)) {
            throw error;
          }
        }
        return { ns: Math.min(fuel, FUEL) * NS_PER_FUEL };
      },
    };
  });
}

/** Values above the longest text are none that a guest can pass. */
function textOf(value: RegoValue): string {
  try {
    return regoText(value);
  } catch {
    return '""';
  }
}
