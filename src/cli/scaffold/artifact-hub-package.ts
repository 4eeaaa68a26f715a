// The package of a policy for Artifact Hub, as `kwctl scaffold artifacthub` makes it from the metadata of the policy:
// https://artifacthub.io/docs/topics/repositories/kubewarden-policies/
import { errorText } from '../../values/index.ts';
import { parseReference, type PolicyMetadata } from '../../modules/index.ts';
import { CliError } from '../errors.ts';
import { dataText } from '../output.ts';

export interface PackageOptions {
  /** Default: that of the metadata. */
  readonly version?: string;
  readonly createdAt: Date;
  /** Tag of the release on GitHub that has `policy.wasm`. Default: the version after a `v`. */
  readonly releaseTag?: string;
  /** Text of `questions-ui.yml`, the form for settings in Rancher. */
  readonly questions?: string;
}

export interface ArtifactHubPackage {
  readonly text: string;
  /** What is left out. */
  readonly notes: readonly string[];
}

const TITLE = 'io.kubewarden.policy.title';
const DESCRIPTION = 'io.kubewarden.policy.description';
const VERSION = 'io.kubewarden.policy.version';
const IMAGE = 'io.kubewarden.policy.ociUrl';
const SOURCE = 'io.kubewarden.policy.source';
const HOME = 'io.kubewarden.policy.url';

/** https://semver.org, without the checks of identifiers that no registry makes. */
const SEMVER = /^(?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/;
/** `Jane Doe <jane@example.com>` */
const AUTHOR = /^(.*\S)\s*<([^\s<>@]+@[^\s<>@]+)>$/;
/** Annotations of the metadata that keep their text. */
const COPIED = {
  'io.artifacthub.resources': 'kubewarden/resources',
  'io.kubewarden.hidden-ui': 'kubewarden/hidden-ui',
} as const;

/** @throws CliError with all annotations that are missing, or wrong */
export function artifactHubPackage(metadata: PolicyMetadata, options: PackageOptions): ArtifactHubPackage {
  const { annotations } = metadata;
  const text = (key: string): string => annotations[key]?.trim() ?? '';
  const version = options.version ?? text(VERSION);
  const problems = [...missing(annotations), ...versionProblems(version), ...urlProblems(annotations)];
  const image = `${text(IMAGE).replace(/^registry:\/\//, '')}:v${version}`;
  if (problems.length === 0) {
    problems.push(...imageProblems(image));
  }
  if (problems.length > 0) {
    throw new CliError(problems.join('\n'), { hint: 'Write them into metadata.yml, below annotations.' });
  }
  const { maintainers, unnamed } = maintainersOf(text('io.kubewarden.policy.author'));
  const keywords = listOf(text('io.artifacthub.keywords'));
  const links = linksOf(text(SOURCE), options.releaseTag ?? `v${version}`);
  const content = {
    version,
    name: text(TITLE),
    displayName: text('io.artifacthub.displayName') || text(TITLE),
    createdAt: options.createdAt.toISOString(),
    description: text(DESCRIPTION),
    ...(text('io.kubewarden.policy.license') === '' ? {} : { license: text('io.kubewarden.policy.license') }),
    ...(text(HOME) === '' ? {} : { homeURL: text(HOME) }),
    containersImages: [{ name: 'policy', image }],
    ...(keywords.length === 0 ? {} : { keywords }),
    ...(links.length === 0 ? {} : { links }),
    ...(maintainers.length === 0 ? {} : { maintainers }),
    annotations: annotationsOf(metadata, options.questions),
  };
  return {
    text: `# The package of a policy for https://artifacthub.io.\n${dataText(content, 'yaml')}`,
    notes: unnamed.map((author) => `${author} is no maintainer of the package: expected "NAME <ADDRESS>"`),
  };
}

function missing(annotations: PolicyMetadata['annotations']): readonly string[] {
  return [TITLE, DESCRIPTION, IMAGE]
    .filter((key) => (annotations[key]?.trim() ?? '') === '')
    .map((key) => `the annotation ${key} is missing`);
}

function versionProblems(version: string): readonly string[] {
  if (SEMVER.test(version)) {
    return [];
  }
  const got = version === '' ? 'none' : JSON.stringify(version);
  return [`expected a version such as 1.2.3 with --version, or in the annotation ${VERSION}, got ${got}`];
}

function urlProblems(annotations: PolicyMetadata['annotations']): readonly string[] {
  return [HOME, SOURCE]
    .filter((key) => annotations[key] !== undefined && !URL.canParse(annotations[key]))
    .map((key) => `the annotation ${key} is no URL: ${JSON.stringify(annotations[key])}`);
}

function imageProblems(image: string): readonly string[] {
  try {
    parseReference(`registry://${image}`);
    return [];
  } catch (error) {
    return [`the annotation ${IMAGE} is no repository of a registry: ${errorText(error)}`];
  }
}

function maintainersOf(authors: string): {
  readonly maintainers: readonly { readonly name: string; readonly email: string }[];
  readonly unnamed: readonly string[];
} {
  const all = listOf(authors).map((author) => ({ author, match: AUTHOR.exec(author) }));
  return {
    maintainers: all.flatMap(({ match }) => (match === null ? [] : [{ name: match[1] ?? '', email: match[2] ?? '' }])),
    unnamed: all.flatMap(({ author, match }) => (match === null ? [author] : [])),
  };
}

function linksOf(source: string, tag: string): readonly { readonly name: string; readonly url: string }[] {
  if (source === '') {
    return [];
  }
  const isOnGitHub = new URL(source).hostname === 'github.com';
  const base = source.replace(/\/$/, '');
  return [
    ...(isOnGitHub ? [{ name: 'policy', url: `${base}/releases/download/${tag}/policy.wasm` }] : []),
    { name: 'source', url: source },
  ];
}

function annotationsOf(metadata: PolicyMetadata, questions: string | undefined): Readonly<Record<string, string>> {
  const { annotations, contextAwareResources, mutating, rules } = metadata;
  return {
    'kubewarden/mutation': String(mutating),
    'kubewarden/rules': dataText(rules, 'yaml'),
    ...(contextAwareResources.length === 0
      ? {}
      : { 'kubewarden/contextAwareResources': dataText(contextAwareResources, 'yaml') }),
    ...(questions === undefined ? {} : { 'kubewarden/questions-ui': questions }),
    ...Object.fromEntries(
      Object.entries(COPIED).flatMap(([from, to]) => {
        const text = annotations[from];
        return text === undefined ? [] : [[to, text]];
      }),
    ),
  };
}

function listOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}
