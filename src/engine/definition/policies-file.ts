import { endOfJsonString, errorText, parseJson, textPosition } from '../../values/index.ts';
import { EngineError } from '../values/errors.ts';
import { faultText } from '../values/field-reader.ts';
import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject } from '../values/json-text.ts';
import type { PolicyDefinition } from './policy-definition.ts';
import { readPolicyDefinition, ValueBudget } from './policy-reader.ts';
import type { PolicyFault, PolicyProblemCode } from './policy-reader.ts';
import { parseYaml, YamlPositions, YamlSyntaxError } from '../../values/yaml/index.ts';

/**
 * Maximum size of a policies file, in characters. 3,500 policies with their own settings take 1 MB, and a ConfigMap
 * holds at most 1 MiB; sixteen times that still parses in about two seconds.
 */
const MAX_POLICIES_FILE_LENGTH = 16 * 1024 * 1024;
/** Maximum number of policies in one file: more than five times the largest known set (3,500). */
const MAX_POLICIES = 20_000;

/** Longest kind in a message. API servers allow 63 characters. */
const MAX_KIND_LENGTH = 63;

/** A mistake in one policy of the file. The policy is not loaded; the others are. */
export interface PolicyProblem {
  readonly id: string;
  readonly code: PolicyProblemCode;
  /** Expected value, found value and what to do, without the position. */
  readonly message: string;
  /** Position in the file, counted from 1. */
  readonly line: number;
  readonly column: number;
  /** Path inside the policy, such as `policies.signed.module`; empty for the policy itself. */
  readonly field: string;
}

export interface ParsedPolicies {
  readonly policies: readonly PolicyDefinition[];
  readonly problems: readonly PolicyProblem[];
}

/**
 * Parses a policies file (`policies.yml`), YAML or JSON. A mistake in one policy leaves out only that policy. Throws
 * `policies-file-too-large`, `policies-file-malformed` and `policies-file-wrong-shape` when the file as a whole is
 * invalid; `fileName` is used in those messages.
 */
export function parsePolicies(text: string, fileName: string): ParsedPolicies {
  if (text.length > MAX_POLICIES_FILE_LENGTH) {
    throw new EngineError(
      'policies-file-too-large',
      `${fileName} is too large: expected at most ${MAX_POLICIES_FILE_LENGTH} characters, got ${text.length}. Split the policies over several servers.`,
    );
  }
  const root = parseDocument(text, fileName);
  const ids = Object.keys(root);
  if (ids.length > MAX_POLICIES) {
    throw new EngineError(
      'policies-file-wrong-shape',
      `${fileName} has too many policies: expected at most ${MAX_POLICIES}, got ${ids.length}. Split them over several servers.`,
    );
  }
  const budget = new ValueBudget();
  const policies: PolicyDefinition[] = [];
  const faulty: { readonly id: string; readonly faults: readonly PolicyFault[] }[] = [];
  for (const id of ids) {
    const read = readPolicyDefinition(id, root[id], budget);
    if (read.definition === undefined) {
      faulty.push({ id, faults: read.faults });
    } else {
      policies.push(read.definition);
    }
  }
  return { policies, problems: locateFaults(text, faulty) };
}

function locateFaults(
  text: string,
  faulty: readonly { readonly id: string; readonly faults: readonly PolicyFault[] }[],
): PolicyProblem[] {
  if (faulty.length === 0) {
    return [];
  }
  const positions = new YamlPositions(text);
  const lineStarts = startsOfLines(text);
  return faulty.flatMap(({ id, faults }) =>
    faults.map((fault) => {
      const { line, column } = lineAndColumn(lineStarts, positions.offsetOf([id, ...fault.path]));
      return { id, code: fault.code, message: faultText(fault), line, column, field: fault.path.join('.') };
    }),
  );
}

/** Offsets of all lines, computed once: counting lines for each of thousands of mistakes would be quadratic. */
function startsOfLines(text: string): number[] {
  const starts = [0];
  for (let newline = text.indexOf('\n'); newline !== -1; newline = text.indexOf('\n', newline + 1)) {
    starts.push(newline + 1);
  }
  return starts;
}

function lineAndColumn(starts: readonly number[], offset: number): { line: number; column: number } {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 };
}

function parseDocument(text: string, fileName: string): JsonObject {
  const root = parseAsJson(text) ?? parseAsYaml(text, fileName);
  refuseManifest(root, fileName);
  if (root === null) {
    // A file is empty while it is being written, or when a disk is full. That must not remove all policies.
    throw new EngineError(
      'policies-file-wrong-shape',
      `${fileName} is empty: expected a mapping of policy ids to policies. Write {} to declare none.`,
    );
  }
  if (!isJsonObject(root)) {
    throw new EngineError(
      'policies-file-wrong-shape',
      `${fileName} has the wrong shape: expected a mapping of policy ids to policies, got ${describe(root)}. Write "<id>:" and the policy below it, indented.`,
    );
  }
  return root;
}

/** What is applied to a cluster, and what is served without one, are easily confused. */
function refuseManifest(document: unknown, fileName: string): void {
  const { apiVersion, kind } = isJsonObject(document) ? document : {};
  if (typeof apiVersion === 'string' && typeof kind === 'string') {
    throw new EngineError(
      'policies-file-wrong-shape',
      `${fileName} has a manifest of the kind ${kind.slice(0, MAX_KIND_LENGTH)}: expected a mapping of policy ids to policies. Manifests are served by "portcullis start --policies", and evaluated by "portcullis run" and "portcullis test -p".`,
    );
  }
}

/**
 * Parses JSON, which the controller writes, ten times faster than YAML. JSON.parse keeps the last of two equal keys, so
 * the keys of the text are counted; when they differ, the YAML parser reports the position.
 */
function parseAsJson(text: string): unknown {
  if (!text.trimStart().startsWith('{')) {
    return undefined;
  }
  try {
    let keys = 0;
    const value: unknown = parseJson(text);
    for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
      at = endOfJsonString(text, at);
      while (isJsonSpace(text.charCodeAt(at))) {
        at++;
      }
      if (text.charCodeAt(at) === 0x3a) {
        keys++;
      }
    }
    return keys === countKeys(value) ? value : undefined;
  } catch {
    // Not JSON, or nested too deep for JSON.parse. Flow YAML starts with a brace as well, and the YAML parser has
    // limits.
    return undefined;
  }
}

function isJsonSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) {
    return 0;
  }
  const members = Object.values(value);
  let keys = Array.isArray(value) ? 0 : members.length;
  for (const member of members) {
    keys += countKeys(member);
  }
  return keys;
}

function parseAsYaml(text: string, fileName: string): unknown {
  try {
    const documents = parseYaml(text);
    documents.forEach((document) => refuseManifest(document, fileName));
    if (documents.length > 1) {
      throw new EngineError(
        'policies-file-wrong-shape',
        `${fileName} has the wrong shape: expected one YAML document, got ${documents.length}. Join them and remove the "---" lines.`,
      );
    }
    return documents[0] ?? null;
  } catch (error) {
    if (!(error instanceof YamlSyntaxError)) {
      throw error;
    }
    // For quoted keys, the parser reports the offset of the content.
    const isQuoted = /^["']$/.test(text.charAt(error.offset - 1)) && /duplicated/.test(error.message);
    const offset = isQuoted ? error.offset - 1 : error.offset;
    const position = textPosition(text, offset);
    const where = `${fileName}:${position.line}:${position.column}`;
    const duplicate = /duplicated mapping key/.test(error.message) ? duplicateKey(text, offset) : undefined;
    const what =
      duplicate === undefined
        ? `${where} is not YAML: ${errorText(error)}. Correct the line.`
        : `${where} names ${JSON.stringify(duplicate)} twice: expected every key of a mapping once. Rename or remove one of them.`;
    throw new EngineError('policies-file-malformed', `${what}\n${position.excerpt}`, { position, cause: error });
  }
}

/** The key that starts at `offset`. */
function duplicateKey(text: string, offset: number): string {
  const rest = text.slice(offset, offset + 512);
  const quoted = /^"((?:[^"\\]|\\.)*)"|^'((?:[^']|'')*)'/.exec(rest);
  return quoted?.[1] ?? quoted?.[2] ?? rest.split(/\s*:(?:\s|$)|\n/, 1)[0] ?? '';
}

function describe(value: unknown): string {
  if (value === null) {
    return 'null';
  }
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}
