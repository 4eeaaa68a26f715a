// What a cluster says of policies when they are applied, by what is known without one: the rights of authors, and what
// PolicyServers grant, are not.
import { pathToFileURL } from 'node:url';
import {
  BuiltinSettings,
  type KeyPath,
  type JsonObject,
  manifestProblems,
  type PolicyDefinition,
} from '../../engine/index.ts';
import { type LintFinding, lintManifest } from '../../engine/type-check/index.ts';
import { OwnKindsRules } from '../../lifecycle/admission/index.ts';
import { isBuiltin, parseBuiltin } from '../../modules/index.ts';
import type { OwnKind } from '../../resources/index.ts';
import { isJsonObject, own, parseJson, textOf, valueAt } from '../../values/index.ts';
import { CliError } from '../errors.ts';
import { definedSchemas } from '../custom-kinds.ts';
import { fieldPathOf } from '../field-path.ts';
import type { FilePolicy, PolicyError, PolicyFindings } from './file-policy.ts';
import { isPolicyOfKubernetes } from './manifests.ts';
import type { PolicyWarning } from './policy-warning.ts';
import { placedMessage, type PlacedManifest } from './placed-manifests.ts';
import { type FilePlace, type PlaceOf, textBefore } from './source-places.ts';

/** Refuses a policy that a cluster refuses. @throws CliError with all errors */
export function requireApplicable({ findings }: Pick<FilePolicy, 'findings'>): void {
  const { errors } = findings();
  if (errors.length > 0) {
    throw new CliError(errorsText(errors));
  }
}

/** Errors, one after the other. */
export function errorsText(errors: readonly PolicyError[]): string {
  return errors.map(({ text }) => text).join('\n');
}

/** Refuses settings of a builtin policy that are in a file. @throws CliError with the places of all mistakes */
export function requireSettings(definition: PolicyDefinition, placeOf: PlaceOf | undefined): void {
  const errors = placeOf === undefined ? [] : entryFindings(definition, placeOf).errors;
  if (errors.length > 0) {
    throw new CliError(`Provided settings are not valid: ${errorsText(errors)}`);
  }
}

/** The value of a function, computed on first use. */
export function once<Value extends object>(compute: () => Value): () => Value {
  let value: Value | undefined;
  return () => (value ??= compute());
}

/** Where a message of CEL says that an expression is wrong. */
const MISTAKE = /ERROR: <input>:(\d+):(\d+): /;

/** Not the user of any request. */
const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';

/** The findings of the webhook for our kinds. @param objects other manifests, with CustomResourceDefinitions */
export function ownFindings(placed: PlacedManifest, kind: OwnKind, objects: readonly JsonObject[]): PolicyFindings {
  const { object, source } = placed;
  const modulesUrl = new URL(`${pathToFileURL(source.folder).href}/`);
  const rules = new OwnKindsRules({
    controllerUser: CONTROLLER,
    appliesVerification: true,
    modulesUrl,
    customKinds: definedSchemas(objects),
  });
  const findings = rules.findingsOf(kind, object);
  return {
    errors: findings.errors.map((error) => {
      const { field, message } = error;
      return { field, text: placedError(placed, field, message, findings.placeOf(error)) };
    }),
    warnings: findings.warned.map(({ code, field, text, place }) => placedWarning(placed, code, field, text, place)),
  };
}

/**
 * The mistakes for which API servers refuse manifests of Kubernetes' own policies and bindings.
 * @param placed the policy and its bindings
 * @param objects other manifests, with CustomResourceDefinitions
 */
export function kubernetesFindings(
  placed: readonly PlacedManifest[],
  kubernetesVersion: number | undefined,
  objects: readonly JsonObject[],
): PolicyFindings {
  const options = kubernetesVersion === undefined ? {} : { kubernetesVersion };
  const errors = placed.flatMap((one) =>
    manifestProblems([one.object], options).map(({ field, message }) => ({
      field,
      text: placedError(one, field, message),
    })),
  );
  return {
    errors,
    warnings: placed.flatMap((one) => lintWarnings(one, { ...options, customKinds: definedSchemas(objects) })),
  };
}

/** API servers accept what can never do anything, too: a policy of theirs that fails always is no error here either. */
function lintWarnings(placed: PlacedManifest, options: Parameters<typeof lintManifest>[1]): readonly PolicyWarning[] {
  return isPolicyOfKubernetes(placed.object)
    ? lintManifest(placed.object, options).map(({ code, field, message, place }) =>
        placedWarning(placed, code, field, message, place),
      )
    : [];
}

/** The mistakes in settings of builtin policies of a policies file. */
export function entryFindings(definition: PolicyDefinition, placeOf: PlaceOf): PolicyFindings {
  const uses =
    definition.kind === 'policy'
      ? [{ at: '', ...definition }]
      : definition.members.map((member) => ({ at: `policies.${member.name}.`, ...member }));
  const errors = uses.flatMap(({ at, module, settingsJson }) => {
    const settings = isBuiltin(module) ? parseJson(settingsJson) : undefined;
    const { problems } = isBuiltin(module)
      ? new BuiltinSettings().check(parseBuiltin(module), settings)
      : { problems: [] };
    return problems.map(({ field, message, position }) => {
      const path = `${at}settings${field === '' ? '' : `.${field}`}`;
      const expression = textAt(settings, fieldPathOf(field));
      const place = placeOf(fieldPathOf(path), position && textBefore(expression, position));
      return { field: path, text: `${placeText(place)} ${definition.id}: ${path}: ${message}` };
    });
  });
  return { errors, warnings: [] };
}

/** `ClusterAdmissionPolicy pinned-images` */
export function subjectOf(object: JsonObject): string {
  return `${textOf(own(object, 'kind'))} ${textOf(valueAt(object, 'metadata', 'name'))}`;
}

/** Where in an expression a mistake is. */
type ExpressionPlace = LintFinding['place'];

function placedWarning(
  { object, placeOf }: PlacedManifest,
  rule: string,
  field: string,
  text: string,
  place: ExpressionPlace,
): PolicyWarning {
  return {
    rule,
    policy: subjectOf(object),
    field,
    message: `${text} [${rule}]`,
    place:
      place === undefined
        ? placeOfMessage(placeOf, object, field, text)
        : placeOf(fieldPathOf(field), textBefore(place.expression, place)),
  };
}

/** A message of CEL shows the expression, any other the line of the file. */
function placedError(placed: PlacedManifest, field: string, message: string, place?: ExpressionPlace): string {
  const { object, placeOf } = placed;
  const text = `${subjectOf(object)}: ${field}: ${message}`;
  return MISTAKE.test(message)
    ? `${placeText(placeOfMessage(placeOf, object, field, message))} ${text}`
    : placedMessage(placed, fieldPathOf(field), text, place && textBefore(place.expression, place));
}

/** The place of a mistake in an expression, or of its field. */
function placeOfMessage(placeOf: PlaceOf, object: JsonObject, field: string, message: string): FilePlace {
  const path = fieldPathOf(field);
  const [, line, column] = MISTAKE.exec(message) ?? [];
  const text = textAt(object, path);
  return line === undefined
    ? placeOf(path)
    : placeOf(path, textBefore(text, { line: Number(line), column: Number(column) }));
}

/** The text at a path; empty where there is none. */
function textAt(value: unknown, path: KeyPath): string {
  const found = path.reduce(
    (inner: unknown, step) =>
      Array.isArray(inner) ? inner[Number(step)] : isJsonObject(inner) ? own(inner, String(step)) : undefined,
    value,
  );
  return textOf(found);
}

function placeText({ file, line, column }: FilePlace): string {
  return `${file}:${line}:${column}`;
}
