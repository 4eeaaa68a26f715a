// Entry of the thread that checks the types of policies: documents of schemas are large, and users write the expressions.
import { OpenApiComponents } from '../../resources/index.ts';
import { answerJobs } from '../../threads/index.ts';
import { errorText, KeptEntries } from '../../values/index.ts';
import { runTypeCheck, type TypeCheckJob } from './type-check-job.ts';
import { skippedReport, type TypeCheckReport } from './type-check-report.ts';

/** Parsed documents that are kept; that of `v1` takes 5 MB. */
const MAX_KEPT = 12;
const kept = new KeptEntries<string, OpenApiComponents>({ maxEntries: MAX_KEPT });

answerJobs((job: TypeCheckJob): TypeCheckReport => {
  try {
    return runTypeCheck(job, job.documents.map(componentsOf));
  } catch (error) {
    return skippedReport(errorText(error));
  }
});

function componentsOf({ text, hash }: TypeCheckJob['documents'][number]): OpenApiComponents {
  const components = kept.get(hash) ?? OpenApiComponents.parse(text);
  kept.set(hash, components);
  return components;
}
