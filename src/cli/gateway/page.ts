import { builtPage } from '../../space/page-files.ts';

/** Web chat and Space, from the files beside the program. */
export const webPage = builtPage();
