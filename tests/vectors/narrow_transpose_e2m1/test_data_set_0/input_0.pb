BxJ5eº|xÐRˆ®÷LÿªñN AþžeW%VP^.qše^;…+xïYj¸6H\jS8ª
