// Prepares a test file: reads the files that it names, fetches modules, builds requests.
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { modulesOf } from '../../../engine/definition/index.ts';
import {
  type KeyPath,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parsePolicies,
  type PolicyDefinition,
  type Route,
} from '../../../engine/index.ts';
import { ReplayPort } from '../../../engine/capabilities/index.ts';
import {
  isBuiltin,
  type ModuleReference,
  type PolicyMetadata,
  readMetadata,
  type Verification,
} from '../../../modules/index.ts';
import type { SourcesConfig } from '../../../modules/sources/index.ts';
import { readDocument, readText } from '../../document.ts';
import { CliError, EXIT } from '../../errors.ts';
import { readModule, targetReference } from '../../module/module-source.ts';
import { admissionReview, type RequestDetails } from '../../policy/admission-request.ts';
import { manifestFiles, manifestsPolicy } from '../../policy/manifests.ts';
import { parseManifestDocuments, type PlacedManifest, placedManifests } from '../../policy/placed-manifests.ts';
import {
  choosePolicy,
  ofKubernetes,
  policiesAmong,
  type PolicyFiles,
  type PolicyFilesOptions,
} from '../../policy/policy-files.ts';
import type { FilePolicy, PolicyError } from '../../policy/file-policy.ts';
import { matchRequest, type RequestMatch } from '../../policy/match-request.ts';
import { findPolicy } from '../../policy/policies-file.ts';
import { errorsText } from '../../policy/policy-findings.ts';
import { moduleReference } from '../../policy/policy-code.ts';
import type { ModuleInput, PolicyRequest, RunnablePolicy } from '../../policy/policy-runner.ts';
import { ServedKinds } from '../../policy/served-kinds.ts';
import { type PlaceOf, placesOfSettings, SourcePlaces } from '../../policy/source-places.ts';
import { type PolicyWarning, warningText } from '../../policy/policy-warning.ts';
import { filePolicyWarnings, typeWarnings } from '../../policy/type-warnings.ts';
import { MAX_ID_LENGTH, withTimeout } from '../../policy/policy-flags.ts';
import type { Progress } from '../../progress.ts';
import { currentReview, readRequest } from '../../policy/request-document.ts';
import { errorText, exactJson, parseJson, textPosition } from '../../../values/index.ts';
import { type VerdictExpectation, withDefaultNamespace } from './compare.ts';
import { plainValue } from '../../plain-json.ts';
import { located } from './read-suite.ts';
import type { FileSource, ManifestSubject, ValueSource, TestedPolicy, TestCase, TestSuite } from './suite.ts';

export interface PreparedCase {
  readonly test: TestCase;
  readonly expect: VerdictExpectation & { readonly settings?: 'accepted' | 'rejected'; readonly matched?: boolean };
  /** The object of the request, to which a patch is applied. */
  readonly object: JsonValue;
  /** The object after a patch, with defaults. Absent: a request in a file says itself what its objects are. */
  readonly withDefaults?: (object: JsonValue) => JsonValue;
}

export interface PreparedSuite {
  readonly suite: TestSuite;
  readonly cases: readonly PreparedCase[];
  /** About the policy: its rules, and the types of its expressions. */
  readonly warnings: readonly PolicyWarning[];
  /** About the objects of cases. */
  readonly notes: readonly string[];
  readonly variants: readonly SuiteVariant[];
}

/** A policy under some settings, and the cases that use them. */
interface SuiteVariant {
  readonly policy: RunnablePolicy;
  /** Why a cluster refuses the policy. Absent: it does not. */
  readonly refusal?: string;
  /** Absent: those of the policy. */
  readonly settings?: StatedSettings;
  readonly questions: readonly SuiteQuestion[];
}

/** Settings of a case. */
interface StatedSettings {
  readonly value: JsonObject;
  /** Places of fields below `settings`. */
  readonly placeOf: PlaceOf;
}

/** What a case asks. */
export interface SuiteQuestion {
  /** Position of the case. */
  readonly index: number;
  /** Absent: only the settings are checked. */
  readonly request?: PolicyRequest;
  /** Whether the policy matches the request. Absent: it has no rules. */
  readonly match?: RequestMatch;
  /** Text of a recorded session that answers host capabilities. */
  readonly session?: string;
}

interface PrepareOptions {
  readonly progress: Progress;
  readonly sources?: SourcesConfig;
  readonly verification?: Verification | undefined;
  /** Timeout of an evaluation in seconds. Default: that of the policy. */
  readonly timeout?: number;
  /** Called with the absolute path of every file before it is read, for `--watch`. */
  readonly onFile: (path: string) => void;
}

/**
 * Prepares a suite from the text of its file.
 * @throws CliError with all problems
 */
export async function prepareSuite(suite: TestSuite, text: string, options: PrepareOptions): Promise<PreparedSuite> {
  return await new Preparation(suite, text, options).prepare();
}

/** The request of a case, and its object. */
interface CaseRequest {
  readonly request?: PolicyRequest;
  readonly object: JsonValue;
  readonly withDefaults?: (object: JsonValue) => JsonValue;
}

/** The modules of a policy, and how to build its definition from settings. */
interface SuitePolicy {
  readonly define: (settings: JsonObject | undefined) => PolicyDefinition;
  readonly modules: Readonly<Record<string, ModuleInput>>;
  readonly objects?: readonly JsonObject[];
  readonly match?: (request: PolicyRequest) => RequestMatch;
  /** Why a cluster refuses the policy. */
  readonly errors?: readonly PolicyError[];
  /** The kinds that its manifests define, too. */
  readonly kinds?: ServedKinds;
  /** About the policy under some settings. @param objects of the cases that use them */
  readonly warningsOf: (variant: SuiteVariant, objects: readonly JsonValue[]) => readonly PolicyWarning[];
}

class Preparation {
  readonly #suite: TestSuite;
  readonly #text: string;
  readonly #options: PrepareOptions;
  readonly #folder: string;
  readonly #problems: string[] = [];
  readonly #texts = new Map<string, Promise<string>>();
  readonly #notes: string[] = [];
  #kinds = new ServedKinds([]);

  constructor(suite: TestSuite, text: string, options: PrepareOptions) {
    this.#suite = suite;
    this.#text = text;
    this.#options = options;
    this.#folder = dirname(resolve(suite.file));
  }

  async prepare(): Promise<PreparedSuite> {
    const { suite } = this;
    const plan = await this.#at(suite.subjectAt, () => this.#plan(suite.subject));
    this.#kinds = plan?.kinds ?? this.#kinds;
    const prepared = await Promise.all(suite.cases.map((test) => this.#at(test.at, () => this.#case(test))));
    const variants = plan === undefined ? undefined : await this.#variants(plan, prepared);
    if (variants === undefined || this.#problems.length > 0) {
      throw new CliError([...new Set(this.#problems)].join('\n'), { exitCode: EXIT.usage });
    }
    const cases = prepared.flatMap((entry) => entry?.case ?? []);
    const warnings = variants.flatMap((variant) => plan?.warningsOf(variant, objectsOf(variant, cases)) ?? []);
    return { suite, cases, warnings: distinct(warnings), notes: [...new Set(this.#notes)], variants };
  }

  /** Names of files that the test file names are relative to its folder. */
  #shownFile(path: string): string {
    return isAbsolute(path) ? path : join(dirname(this.#suite.file), path);
  }

  #placesInSuite(above: KeyPath): PlaceOf {
    return new SourcePlaces(this.#text, this.#suite.file).below(above);
  }

  /** The places of settings in a file of their own. */
  async #placesOfSettings(path: string): Promise<PlaceOf> {
    return placesOfSettings(await this.#read(this.#path(path)), this.#shownFile(path));
  }

  get suite(): TestSuite {
    return this.#suite;
  }

  /** Runs an action; an error is recorded with its position in the test file. */
  async #at<Result>(at: number, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#problems.push(
        error instanceof LocatedError ? error.message : located(this.#text, this.#suite.file, at, withHint(error)),
      );
      return undefined;
    }
  }

  /** Errors in the contents of a file are located where the test file names it. */
  async #inFile<Result>(
    { at }: FileSource,
    work: () => Promise<Result>,
    describe: (error: unknown) => string = errorText,
  ): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      throw new LocatedError(located(this.#text, this.#suite.file, at, describe(error)), { cause: error });
    }
  }

  async #case(test: TestCase): Promise<{ case: PreparedCase; question: Omit<SuiteQuestion, 'index'> }> {
    const { object: wanted, ...rest } = test.expect;
    const [actual, session, expected] = await Promise.all([
      this.#request(test),
      test.session === undefined ? undefined : this.#session(test.session),
      wanted === undefined ? undefined : this.#json(wanted),
    ]);
    const { request, object, withDefaults } = actual;
    const placed = expected === undefined ? undefined : withDefaultNamespace(expected, object);
    const expect = { ...rest, ...(placed === undefined ? {} : { object: withDefaults?.(placed) ?? placed }) };
    return {
      case: { test, expect, object, ...(withDefaults === undefined ? {} : { withDefaults }) },
      question: {
        ...(request === undefined ? {} : { request }),
        ...(session === undefined ? {} : { session }),
      },
    };
  }

  async #request({ question }: TestCase): Promise<CaseRequest> {
    switch (question.kind) {
      case 'none':
        return { object: null };
      case 'raw': {
        const object = await this.#json(question.request);
        const body = await this.#body(question.request, 'validate_raw', { request: object });
        return { request: { body, route: 'validate_raw' }, object };
      }
      case 'request': {
        const review = await this.#object(question.request);
        const isWhole = 'request' in review || review['kind'] === 'AdmissionReview';
        const whole = isWhole ? currentReview(review) : { request: review };
        const body = await this.#body(question.request, 'validate', whole);
        const request = isJsonObject(whole['request']) ? whole['request'] : {};
        return { request: { body, route: 'validate' }, object: request['object'] ?? null };
      }
      case 'objects': {
        const [object, oldObject] = await Promise.all([
          question.object === undefined ? undefined : this.#object(question.object),
          question.oldObject === undefined ? undefined : this.#object(question.oldObject),
        ]);
        const objects = {
          ...(object === undefined ? {} : { object: this.#defaulted(object) }),
          ...(oldObject === undefined ? {} : { oldObject: this.#defaulted(oldObject) }),
        };
        const review = admissionReview(objects, this.#detailsOf(object ?? oldObject ?? {}, question.details));
        const request = review['request'] as JsonObject;
        return {
          request: { body: jsonBytes(review), route: 'validate' },
          object: request['object'] ?? null,
          withDefaults: (changed) => (isJsonObject(changed) ? this.#kinds.defaulted(changed).object : changed),
        };
      }
      default:
        return question satisfies never;
    }
  }

  #defaulted(given: JsonObject): JsonObject {
    const { object, note } = this.#kinds.defaulted(given);
    this.#notes.push(...(note === undefined ? [] : [note]));
    return object;
  }

  /** With the resource of a kind that the manifests define. That of another kind is not guessed: a test states it. */
  #detailsOf(object: JsonObject, stated: RequestDetails): RequestDetails {
    const { details, note } = this.#kinds.kindOf(object);
    return stated.resource === undefined && note === undefined ? { ...details, ...stated } : stated;
  }

  /** A request in a file is passed on unchanged, so that its numbers keep their form. */
  async #body(source: ValueSource<JsonValue>, route: Route, value: JsonObject): Promise<Uint8Array> {
    return 'path' in source ? await readRequest(this.#path(source.path), route) : jsonBytes(value);
  }

  async #variants(
    plan: SuitePolicy,
    prepared: readonly ({ question: Omit<SuiteQuestion, 'index'> } | undefined)[],
  ): Promise<readonly SuiteVariant[]> {
    const variants = new Map<string, SuiteVariant & { questions: SuiteQuestion[] }>();
    const { modules, objects } = plan;
    const code = { modules, ...(objects === undefined ? {} : { objects }) };
    for (const [index, test] of this.#suite.cases.entries()) {
      const { question } = prepared[index] ?? {};
      await this.#at(test.at, async () => {
        const settings = test.settings === undefined ? undefined : await this.#object(test.settings);
        const key = settings === undefined ? '' : exactJson(settings);
        const variant = variants.get(key) ?? {
          policy: { definition: plan.define(settings), ...code },
          ...refusalOf(plan, settings !== undefined),
          ...(test.settings === undefined || settings === undefined
            ? {}
            : { settings: { value: settings, placeOf: await this.#placesOfCase(test.settings, index) } }),
          questions: [],
        };
        variants.set(key, variant);
        const { request } = question ?? {};
        const match = request === undefined ? undefined : plan.match?.(request);
        variant.questions.push({ index, ...question, ...(match === undefined ? {} : { match }) });
      });
    }
    return [...variants.values()];
  }

  async #placesOfCase(settings: ValueSource, index: number): Promise<PlaceOf> {
    return 'path' in settings ? await this.#placesOfSettings(settings.path) : this.#placesInSuite(['cases', index]);
  }

  async #plan(subject: TestedPolicy): Promise<SuitePolicy> {
    switch (subject.kind) {
      case 'policy':
        return await this.#ownPolicy(subject);
      case 'entry':
        return await this.#inFile(subject.file, () => this.#entryOfFile(subject.file.path, subject.id), withHint);
      case 'manifests':
        return await this.#manifests(subject);
      default:
        return subject satisfies never;
    }
  }

  async #ownPolicy(subject: Extract<TestedPolicy, { kind: 'policy' }>): Promise<SuitePolicy> {
    const { entry, settingsFile, executionMode } = subject;
    const stated = settingsFile === undefined ? {} : { settings: await this.#object(settingsFile) };
    const base = { ...entry, ...stated };
    const { modules, metadata } = await this.#modules(modulesOf(this.#define(base)), (module) =>
      targetReference(module, this.#folder),
    );
    const chosen = executionMode === undefined ? {} : { chosenMode: executionMode };
    return {
      modules: Object.fromEntries(
        Object.entries(modules).map(([reference, input]) => [
          reference,
          'bytes' in input ? { ...input, ...chosen } : input,
        ]),
      ),
      define: (settings) => this.#define(granted(withSettings(base, settings), metadata)),
      warningsOf: entryWarnings(
        settingsFile === undefined ? this.#placesInSuite(['policy']) : await this.#placesOfSettings(settingsFile.path),
      ),
    };
  }

  async #entryOfFile(path: string, id: string): Promise<SuitePolicy> {
    const file = this.#path(path);
    const text = await this.#read(file);
    const found = findPolicy(text, path, id);
    const baseDir = dirname(file);
    const placeOf = new SourcePlaces(text, this.#shownFile(path)).below([id]);
    return { ...(await this.#planOf(found, baseDir)), warningsOf: entryWarnings(placeOf) };
  }

  /** @param files by the reference of the module that each replaces */
  async #planOf(
    found: PolicyDefinition,
    baseDir: string,
    files: Readonly<Record<string, FileSource>> = {},
  ): Promise<Omit<SuitePolicy, 'warningsOf'>> {
    const references = modulesOf(found);
    const unused = Object.keys(files).find((reference) => !references.includes(reference));
    if (unused !== undefined) {
      throw new CliError(`modules: ${found.id} has no module ${unused}: it has ${references.join(', ')}`);
    }
    const { modules } = await this.#modules(references, (module) =>
      Object.hasOwn(files, module)
        ? targetReference(files[module]?.path ?? '', this.#folder)
        : moduleReference(module, baseDir),
    );
    return {
      modules,
      define: (settings) => {
        if (settings === undefined) {
          return this.#timed(found);
        }
        if (found.kind === 'group') {
          throw new CliError('settings: a group has no settings, its members have');
        }
        return this.#timed({ ...found, settingsJson: exactJson(settings) });
      },
    };
  }

  async #manifests(subject: ManifestSubject): Promise<SuitePolicy> {
    const { sources, name, mode, modules: files, hostCapabilities, kubernetesVersion } = subject;
    const placed = await Promise.all(
      sources.map(async (source, index) =>
        'value' in source
          ? [this.#inlineManifest(source.value, index)]
          : await this.#inFile(source, () => this.#manifestsIn(source.path)),
      ),
    );
    const found = this.#policiesAmong(placed.flat(), {
      ...(kubernetesVersion === undefined ? {} : { kubernetesVersion }),
      ...(hostCapabilities === undefined ? {} : { tenantCapabilities: hostCapabilities }),
    });
    const together = name === undefined ? ofKubernetes(found, kubernetesVersion) : undefined;
    const policy = together ?? choosePolicy(found.policies, name, 'the list of manifests', '"name"');
    const match = (request: PolicyRequest): RequestMatch => matchRequest(policy, request);
    const kinds = new ServedKinds(found.objects.map(({ object }) => object));
    const warnings = filePolicyWarnings(policy, found.objects).map((one) => this.#placedInSuite(one));
    const warningsOf = ({ settings }: SuiteVariant): readonly PolicyWarning[] =>
      settings === undefined ? warnings : [...warnings, ...settingsWarnings(policy, settings, found.objects)];
    const { errors } = policy.findings();
    if (policy.manifests !== undefined) {
      return { errors, ...this.#planOfKubernetes(policy.manifests, kubernetesVersion), match, kinds, warningsOf };
    }
    const definition = mode === undefined ? policy.definition : { ...policy.definition, mode };
    const plan = await this.#planOf(definition, policy.folder, files);
    return {
      ...plan,
      errors,
      match,
      kinds,
      warningsOf,
      ...(policy.objects === undefined ? {} : { objects: policy.objects }),
    };
  }

  /** Mistakes in a manifest of the test file itself have their positions already. */
  #policiesAmong(placed: readonly PlacedManifest[], options: PolicyFilesOptions): PolicyFiles {
    try {
      return policiesAmong(placed, options);
    } catch (error) {
      const isLocated = error instanceof CliError && error.message.startsWith(`${this.#suite.file}:`);
      throw isLocated ? new LocatedError(error.message, { cause: error }) : error;
    }
  }

  /** Places in manifests of files are named as the test file names them. */
  #placedInSuite(warning: PolicyWarning): PolicyWarning {
    const { place } = warning;
    return place === undefined || place.file === this.#suite.file
      ? warning
      : { ...warning, place: { ...place, file: this.#shownFile(place.file) } };
  }

  #planOfKubernetes(
    manifests: readonly JsonObject[],
    kubernetesVersion: number | undefined,
  ): Omit<SuitePolicy, 'warningsOf'> {
    const { definition, modules } = manifestsPolicy(this.#id, manifests, kubernetesVersion);
    return {
      modules,
      define: (settings) => {
        if (settings !== undefined) {
          throw new CliError(
            'settings: Kubernetes’ own policies have no settings; their parameters are in the manifests',
          );
        }
        return this.#timed(definition);
      },
    };
  }

  #inlineManifest(value: JsonObject, index: number): PlacedManifest {
    const { subjectAt, file } = this.#suite;
    return {
      object: parseJson(exactJson(value)) as JsonObject,
      source: { text: this.#text, name: file, folder: this.#folder },
      positionOf: () => textPosition(this.#text, subjectAt),
      placeOf: this.#placesInSuite(['policy', 'manifests', index]),
    };
  }

  /** The manifests of a file or folder, which messages name as the test file does. */
  async #manifestsIn(path: string): Promise<readonly PlacedManifest[]> {
    const absolute = this.#path(path);
    const files = await manifestFiles(absolute);
    const read = files.map(async (file) => {
      const name = file === absolute ? path : join(path, relative(absolute, file));
      const source = { text: await this.#read(file), name, folder: dirname(file) };
      return placedManifests(parseManifestDocuments(source), source);
    });
    return (await Promise.all(read)).flat();
  }

  /** The name of the policy for messages. */
  get #id(): string {
    return this.#suite.name.replaceAll(/[/\p{Cc}\p{Cs}]/gu, '').slice(0, MAX_ID_LENGTH) || 'policy';
  }

  /** The definition of an entry. Only its settings can still be invalid: the rest was checked with the test file. */
  #define(entry: JsonObject): PolicyDefinition {
    const { policies, problems } = parsePolicies(exactJson({ [this.#id]: entry }), this.#suite.file);
    const [definition] = policies;
    if (definition === undefined) {
      throw new CliError(problems.map(({ message }) => message).join('\n'));
    }
    return this.#timed(definition);
  }

  #timed(definition: PolicyDefinition): PolicyDefinition {
    return withTimeout(definition, this.#options.timeout);
  }

  async #modules(
    references: readonly string[],
    resolveReference: (reference: string) => ModuleReference | Promise<ModuleReference>,
  ): Promise<{
    modules: Readonly<Record<string, ModuleInput>>;
    metadata: Readonly<Record<string, PolicyMetadata | undefined>>;
  }> {
    const modules: Record<string, ModuleInput> = {};
    const metadata: Record<string, PolicyMetadata | undefined> = {};
    for (const reference of references) {
      if (isBuiltin(reference)) {
        continue;
      }
      const resolved = await resolveReference(reference);
      if (resolved.kind === 'file') {
        this.#options.onFile(resolved.path);
      }
      const { bytes } = await readModule(resolved, { ...this.#options, baseDir: this.#folder });
      modules[reference] = { bytes };
      metadata[reference] = readMetadata(bytes);
    }
    return { modules, metadata };
  }

  async #session(source: FileSource): Promise<string> {
    return await this.#inFile(source, async () => {
      const text = await this.#read(this.#path(source.path));
      // Only checks that it can be read.
      void new ReplayPort(text);
      return text;
    });
  }

  /** A mapping in the test file, or in a file of its own. */
  async #object(source: ValueSource): Promise<JsonObject> {
    const value = await this.#json(source);
    if (!isJsonObject(value)) {
      throw new CliError(`${'path' in source ? source.path : 'the value'} is not a mapping`);
    }
    return value;
  }

  async #json(source: ValueSource<JsonValue>): Promise<JsonValue> {
    if ('value' in source) {
      return source.value;
    }
    return await this.#inFile(source, async () => {
      const path = this.#path(source.path);
      this.#options.onFile(path);
      const { value } = await readDocument(path, 'kubernetes-exact');
      return plainValue(value, source.path);
    });
  }

  #path(path: string): string {
    return resolve(this.#folder, path);
  }

  #read(path: string): Promise<string> {
    this.#options.onFile(path);
    const text = this.#texts.get(path) ?? readText(path);
    this.#texts.set(path, text);
    return text;
  }
}

/**
 * Why a cluster refuses the policy. Loading it says what is wrong with its settings.
 * @param hasOwnSettings whether a case replaces the settings
 */
function refusalOf({ errors = [] }: SuitePolicy, hasOwnSettings: boolean): Pick<SuiteVariant, 'refusal'> {
  const wrong = errors.filter(
    ({ field, text }) => !field.startsWith('spec.settings') || !(hasOwnSettings || text.endsWith('[settings]')),
  );
  return wrong.length === 0 ? {} : { refusal: errorsText(wrong) };
}

function withHint(error: unknown): string {
  const hint = error instanceof CliError && error.hint !== undefined ? ` (${error.hint})` : '';
  return `${errorText(error)}${hint}`;
}

/** Warnings about a policy without rules, for the kinds of objects. @param placeOf places of the fields of the policy */
function entryWarnings(placeOf: PlaceOf): SuitePolicy['warningsOf'] {
  return ({ policy: { definition }, settings }, objects) =>
    typeWarnings({ manifests: [], entries: [{ definition, placeOf: settings?.placeOf ?? placeOf }], objects });
}

/** Warnings about other settings for the policy of a manifest. */
function settingsWarnings(
  { placed = [] }: FilePolicy,
  { value, placeOf }: StatedSettings,
  beside: readonly PlacedManifest[],
): readonly PolicyWarning[] {
  const manifests = placed.map(({ object }) => ({
    object: { ...object, spec: { ...(object['spec'] as JsonObject), settings: value } },
    placeOf: ([, ...path]: KeyPath, beginning?: string) => placeOf(path, beginning),
  }));
  return typeWarnings({ manifests: [...manifests, ...beside] }).filter(({ field }) =>
    field.startsWith('spec.settings.'),
  );
}

function objectsOf({ questions }: SuiteVariant, cases: readonly PreparedCase[]): readonly JsonValue[] {
  return questions.map(({ index }) => cases[index]?.object ?? null);
}

function distinct(warnings: readonly PolicyWarning[]): readonly PolicyWarning[] {
  return [...new Map(warnings.map((warning) => [warningText(warning), warning])).values()];
}

/** An error whose message has a position already. */
class LocatedError extends CliError {}

function withSettings(entry: JsonObject, settings: JsonObject | undefined): JsonObject {
  if (settings !== undefined && Object.hasOwn(entry, 'policies')) {
    throw new CliError('settings: a group has no settings, its members have');
  }
  return settings === undefined ? entry : { ...entry, settings };
}

/**
 * Defaults for tests: the policy may change objects and use what the metadata of its module names. Only a recorded session
 * answers host capabilities.
 */
function granted(entry: JsonObject, metadata: Readonly<Record<string, PolicyMetadata | undefined>>): JsonObject {
  const members = entry['policies'];
  if (isJsonObject(members)) {
    const each = Object.entries(members).map(([name, member]) => [
      name,
      isJsonObject(member) ? { ...grantsOf(member, metadata), ...member } : member,
    ]);
    return { ...entry, policies: Object.fromEntries(each) as JsonObject };
  }
  return { allowedToMutate: true, ...grantsOf(entry, metadata), ...entry };
}

function grantsOf(entry: JsonObject, metadata: Readonly<Record<string, PolicyMetadata | undefined>>): JsonObject {
  const { module } = entry;
  const resources = (typeof module === 'string' ? metadata[module] : undefined)?.contextAwareResources ?? [];
  return {
    hostCapabilities: ['*'],
    contextAwareResources: resources.map(({ apiVersion, kind }) => ({ apiVersion, kind })),
  };
}

function jsonBytes(value: JsonValue): Uint8Array {
  return Buffer.from(exactJson(value));
}
