/** `mailctl campaigns`: what is staged and released to many, by name or UUID. */

import type { CommandGroup } from '../frame/command.js';
import { cancel } from './campaigns/cancel.js';
import { links } from './campaigns/links.js';
import { get, list } from './campaigns/list.js';
import { report } from './campaigns/report.js';
import { results } from './campaigns/results.js';
import { resume } from './campaigns/resume.js';
import { campaignsCompare } from './report/compare.js';

export const group: CommandGroup = {
	name: 'campaigns',
	summary: 'where each campaign stands, its report, links and results; compare, resume, cancel',
	examples: [
		'mailctl campaigns list',
		'mailctl campaigns report november',
		'mailctl campaigns results november --only bounced --save bounced-november.csv',
	],
	commands: [list, get, report, links, results, campaignsCompare, resume, cancel],
};
