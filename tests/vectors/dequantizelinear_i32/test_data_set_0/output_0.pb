ByJŒX9,Â½tÁk¼ËÁüišB1¼?1ˆéÂmgªÂ'±’ÂXýÀ
W„Bö¨B¨ÆæA‰AAøBÙðBshUB^ºÃÁaåÂÂ²Ý¾Âk<lÂ‚DBnÄB¤0ŠÂ¤AL7ÁæÐtAj©A PÂòÒ¡AÇKB%€Á°òvBZdßÁHáYÂ¢EéB