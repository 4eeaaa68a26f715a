// Checks templates without resolving them: whether they parse, and call functions that exist.
import { Template, type TemplateFunctions } from '../../go/templates/index.ts';
import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { withIndents } from './author-text.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';
import { HUB, MANAGED, MAX_DEPTH, type Path, pathText, templateError } from './resolve-templates.ts';

/** Characters of templates that are checked. Parsing takes a microsecond each; longer templates show their errors later. */
const MAX_CHECKED_LENGTH = 100_000;
/** Problems that are reported. */
const MAX_PROBLEMS = 10;

/** Only names count for the parser. */
const NAMES: TemplateFunctions = new Map(Array.from(GOVERNANCE_FUNCTIONS.keys(), (name) => [name, () => undefined]));

/** A template that can never be resolved. */
export interface TemplateProblem {
  /** `spec.ports[0]` */
  readonly path: string;
  readonly message: string;
}

/** Which templates of a value are checked. */
export interface CheckedTemplates {
  readonly hub: boolean;
  readonly managed: boolean;
}

/** The templates of a value that do not parse, or call functions that do not exist: the first ones. */
export function templateProblems(value: JsonObject, checked: CheckedTemplates): readonly TemplateProblem[] {
  const problems: TemplateProblem[] = [];
  let length = 0;
  for (const [path, text] of textsOf(value, [])) {
    const isHub = text.includes(HUB.left);
    if (!(isHub ? checked.hub : checked.managed && text.includes(MANAGED.left))) {
      continue;
    }
    length += text.length;
    const message = length > MAX_CHECKED_LENGTH ? undefined : problemOf(text, isHub);
    if (message !== undefined) {
      problems.push({ path: pathText(path), message });
    }
    if (length > MAX_CHECKED_LENGTH || problems.length === MAX_PROBLEMS) {
      break;
    }
  }
  return problems;
}

/** What is wrong with a text. Its actions of the cluster are known only after those of the hub are resolved. */
function problemOf(text: string, isHub: boolean): string | undefined {
  try {
    parse(text, isHub);
    return undefined;
  } catch (error) {
    return templateError(error).message;
  }
}

function parse(text: string, isHub: boolean): Template {
  return new Template(withIndents(text), NAMES, isHub ? HUB : MANAGED);
}

/** All texts of a value, keys included. Deeper values are refused when they are resolved. */
function* textsOf(value: JsonValue, path: Path): Generator<readonly [Path, string]> {
  if (path.length > MAX_DEPTH) {
    return;
  }
  if (typeof value === 'string') {
    yield [path, value];
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      yield* textsOf(item, [...path, index]);
    }
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      yield [[...path, key], key];
      yield* textsOf(item, [...path, key]);
    }
  }
}
