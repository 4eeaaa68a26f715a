// Lists the releases of network providers in network-provider-releases.yaml, by the tags of their repositories; needs Git and
// the internet. `--check` needs neither, and names the releases that the catalogue has not examined. docs/network-policy.md
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dump } from 'js-yaml';
import { faultText, FieldReader, fieldPathText } from '../src/engine/values/field-reader.ts';
import { builtinCatalogue, compareProviderVersions, parseProviderVersion } from '../src/engine/network-policy/index.ts';
import type { Provider } from '../src/engine/network-policy/index.ts';
import { parseYaml } from '../src/values/yaml/index.ts';
import { root } from './generated-files.ts';

const COMMAND = 'node tools/run.mjs tools/network-provider-releases.ts';
const FILE = 'tools/network-provider-releases.yaml';
const HEAD = `# The newest releases of network providers, and those in the year before the day "refreshed", with their days. "npm run drift"
# names those that the catalogue has not examined. Written by "${COMMAND}". Add a repository by hand.
`;
/** Every release line that is still maintained has a release in a year. */
const LISTED_DAYS = 365;
const DAY_MS = 24 * 60 * 60 * 1000;
const DAY = /^\d{4}-\d{2}-\d{2}$/;

interface Release {
  readonly version: string;
  /** `2026-09-16` */
  readonly day: string;
}

interface Repository {
  readonly url: string;
  /** Those of the catalogue whose versions are these. */
  readonly providers: readonly string[];
  /** The newest first. */
  readonly releases: readonly Release[];
}

interface Listing {
  readonly refreshed: string;
  readonly repositories: readonly Repository[];
}

const { values: flags } = parseArgs({
  options: { check: { type: 'boolean', default: false }, file: { type: 'string', default: join(root, FILE) } },
});
try {
  const listing = readListing(readFileSync(flags.file, 'utf8'));
  if (flags.check) {
    check(listing, builtinCatalogue().providers);
  } else {
    refresh(listing);
  }
} catch (error) {
  fail([error instanceof Error ? error.message : String(error)]);
}

function fail(problems: readonly string[]): void {
  console.error(problems.map((problem) => `${FILE}: ${problem}`).join('\n'));
  process.exitCode = 1;
}

function readListing(text: string): Listing {
  const problems: string[] = [];
  const fields = new FieldReader(parseYaml(text)[0], (fault) =>
    problems.push(`${fieldPathText(fault.path)}: ${faultText({ message: fault.message })}`),
  );
  fields.knownKeys(['refreshed', 'repositories']);
  const listing = {
    refreshed: dayAt(fields, 'refreshed'),
    repositories: fields.each('repositories').map(readRepository),
  };
  if (problems.length > 0) {
    throw new Error(problems.join('\n'));
  }
  return listing;
}

function readRepository(fields: FieldReader): Repository {
  fields.knownKeys(['url', 'providers', 'releases'], { owner: 'a repository' });
  const releases = fields.inside('releases');
  return {
    url: fields.requiredText('url'),
    providers: fields.texts('providers'),
    releases: releases === undefined ? [] : releases.keys.map((version) => readRelease(releases, version)),
  };
}

function readRelease(fields: FieldReader, version: string): Release {
  if (parseProviderVersion(version) === undefined) {
    fields.fault(version, 'expected a version such as 1.20.2');
  }
  return { version, day: dayAt(fields, version) };
}

function dayAt(fields: FieldReader, key: string): string {
  const day = fields.requiredText(key);
  if (!DAY.test(day)) {
    fields.fault(key, `expected a day such as 2026-09-16, got "${day}"`);
  }
  return day;
}

/**
 * Names the releases that nobody has examined, which is no failure: a refresh can be committed before any of them is, so that
 * nobody puts it off, and verdicts on later minor versions are Unknown meanwhile. The list changes only with a commit, and so
 * does the answer. What the list and the catalogue contradict each other in is a failure.
 */
function check({ refreshed, repositories }: Listing, catalogue: readonly Provider[]): void {
  const days = Math.floor((Date.now() - Date.parse(refreshed)) / DAY_MS);
  console.log(
    `releases of network providers were listed on ${refreshed}, ${days} days ago; "${COMMAND}" lists them again`,
  );
  const listed = repositories.flatMap(({ providers, releases }) => providers.map((name) => ({ name, releases })));
  const providers = catalogue.map((provider) => ({
    provider,
    releases: listed.find(({ name }) => name === provider.name)?.releases ?? [],
  }));
  const unlisted = providers.filter(
    ({ provider, releases }) => provider.state !== 'Abandoned' && releases.length === 0,
  );
  providers.forEach(({ provider, releases }) => report(provider, releases));
  if (unlisted.length > 0) {
    const names = unlisted.map(({ provider }) => provider.name).toSorted();
    console.log(`no releases are listed of ${names.join(', ')}`);
  }
  const strangers = listed.filter(
    ({ name }, index) =>
      !catalogue.some((provider) => provider.name === name) || listed.findIndex((one) => one.name === name) !== index,
  );
  const problems = [
    ...strangers.map(({ name }) => `${name}: expected a provider of the catalogue, once`),
    ...providers.flatMap(({ provider, releases }) => unlistedLatest(provider, releases)),
  ];
  if (problems.length > 0) {
    fail(problems);
  }
}

function report(provider: Provider, releases: readonly Release[]): void {
  const { name, latest = 'none', checked = 'never' } = provider;
  const unexamined = releases
    .filter((release) => isNewer(release, provider))
    .map(({ version, day }) => `${version} of ${day}`);
  if (unexamined.length > 0) {
    console.log(`not examined: ${name} ${unexamined.join(', ')} (latest ${latest}, checked ${checked})`);
  }
}

/** A later day, too: a fix may have come to an older release line. */
function isNewer({ version, day }: Release, { latest, checked = '' }: Provider): boolean {
  return day > checked || (latest !== undefined && compareVersions(version, latest) > 0);
}

function unlistedLatest({ name, latest }: Provider, releases: readonly Release[]): readonly string[] {
  const isListed = releases.some(({ version }) => latest === undefined || compareVersions(version, latest) >= 0);
  return isListed || releases.length === 0
    ? []
    : [`${name}: latest is ${latest}, and no such release is listed: run ${COMMAND}`];
}

function refresh({ repositories }: Listing): void {
  const refreshed = new Date().toISOString().slice(0, 10);
  const since = new Date(Date.parse(refreshed) - LISTED_DAYS * DAY_MS).toISOString().slice(0, 10);
  const current = repositories.map(({ url, providers }) => ({
    url,
    providers,
    releases: Object.fromEntries(
      releasesOf(url)
        .filter(({ day }, index) => index === 0 || day > since)
        .map(({ version, day }) => [version, day]),
    ),
  }));
  writeFileSync(flags.file, `${HEAD}${dump({ refreshed, repositories: current }, { lineWidth: -1 })}`);
  console.log(`${flags.file} is of ${refreshed}: "${COMMAND} --check" names what is new`);
}

/** The releases of a repository, the newest first. A tag of something else, such as a chart, has another form. */
function releasesOf(url: string): readonly Release[] {
  const tags = git('ls-remote', '--tags', '--refs', url)
    .split('\n')
    .flatMap((line) => line.split('refs/tags/')[1] ?? [])
    .filter(isRelease);
  if (tags.length === 0) {
    throw new Error(`${url} has no tags such as v1.20.2: nothing was written`);
  }
  return daysOf(url, tags)
    .map(({ tag, day }) => ({ version: tag.replace(/^v/, ''), day }))
    .toSorted((one, other) => compareVersions(other.version, one.version));
}

function isRelease(tag: string): boolean {
  return parseProviderVersion(tag)?.isPrerelease === false;
}

/** The days of tags, without the files of the repository. */
function daysOf(url: string, tags: readonly string[]): readonly { readonly tag: string; readonly day: string }[] {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-releases-'));
  try {
    git('init', '--quiet', '--bare', folder);
    const refs = tags.map((tag) => `refs/tags/${tag}:refs/tags/${tag}`);
    git('-C', folder, 'fetch', '--quiet', '--no-tags', '--depth=1', '--filter=tree:0', url, ...refs);
    return git('-C', folder, 'for-each-ref', '--format=%(refname:lstrip=2) %(creatordate:short)', 'refs/tags')
      .split('\n')
      .flatMap((line) => {
        const [tag = '', day = ''] = line.split(' ');
        return tag === '' ? [] : [{ tag, day }];
      });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function git(...args: readonly string[]): string {
  return execFileSync('git', args, { encoding: 'utf8', env: { ...process.env, GIT_TERMINAL_PROMPT: '0' } });
}

function compareVersions(one: string, other: string): number {
  const [left, right] = [parseProviderVersion(one), parseProviderVersion(other)];
  return left === undefined || right === undefined ? 0 : compareProviderVersions(left.numbers, right.numbers);
}
