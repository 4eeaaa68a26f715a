import { labelsText, MANAGED_BY } from '../../resources/index.ts';

/** Of each report that the auditor writes: it touches no others. */
export const REPORT_LABELS = { ...MANAGED_BY, 'app.kubernetes.io/component': 'auditor' } as const;
/** Selects reports of the auditor. */
export const REPORT_SELECTOR: string = labelsText(REPORT_LABELS);
