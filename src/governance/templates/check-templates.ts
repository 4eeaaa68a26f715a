// Checks templates without resolving them: whether they parse, and call functions that exist.
import { Template, type TemplateFunctions } from '../../go/templates/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { withIndents } from './author-text.ts';
import { GOVERNANCE_FUNCTIONS } from './function-table.ts';
import { HUB, MANAGED, MAX_DEPTH, type Path, pathText, templateError } from './resolve-templates.ts';

/**
 * Characters of the templates of an object that are checked. Parsing takes a microsecond each; longer templates show their
 * errors later.
 */
const MAX_CHECKED_LENGTH = 100_000;
/** Problems of an object that are reported. */
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

/** Finds templates that do not parse, or call functions that do not exist. One for each object that is checked. */
export class TemplateChecks {
  #length = 0;
  #problems = 0;

  /** The problems of a value, until the limits are reached. */
  problems(value: JsonObject, checked: CheckedTemplates): readonly TemplateProblem[] {
    const found: TemplateProblem[] = [];
    everyText(value, [], (text, path) => {
      const isHub = text.includes(HUB.left);
      if (!(isHub ? checked.hub : checked.managed && text.includes(MANAGED.left))) {
        return true;
      }
      this.#length += text.length;
      if (this.#length > MAX_CHECKED_LENGTH || this.#problems === MAX_PROBLEMS) {
        return false;
      }
      const message = problemOf(text, isHub);
      if (message !== undefined) {
        this.#problems += 1;
        found.push({ path: pathText(path), message });
      }
      return true;
    });
    return found;
  }
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

/**
 * Calls `check` with the texts of a value, keys included, until it returns false. Deeper values are refused when they are resolved.
 * @param path to the value; changes during the walk, so that a text costs the same at any depth
 * @returns whether `check` never did
 */
function everyText(value: JsonValue, path: (string | number)[], check: (text: string, path: Path) => boolean): boolean {
  if (typeof value === 'string') {
    return check(value, path);
  }
  if (path.length >= MAX_DEPTH || typeof value !== 'object' || value === null) {
    return true;
  }
  const isList = Array.isArray(value);
  const at = path.length;
  for (const [key, item] of isList ? value.entries() : Object.entries(value)) {
    path[at] = key;
    if ((!isList && !check(String(key), path)) || !everyText(item, path, check)) {
      return false;
    }
  }
  path.length = at;
  return true;
}
